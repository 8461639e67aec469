package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/windowsnode"
	"wmco/internal/cli"
)

// verb is a command that sets or removes an annotation of Nodes, which the operator and the node agents act on.
type verb struct {
	name, short, long, example string
	// set returns the annotation and its value for a node; an empty value removes it.
	set func(node corev1.Node, now time.Time, inputs []published.Input) (key, value string)
	// confirms is true for a verb that needs --input.
	confirms bool
	// applies reports whether the verb is for a node; nil is for all. Those that are named and are not are refused,
	// because it refuses them: the others are left out.
	applies func(node corev1.Node) bool
	refuses string
}

// annotationVerbs are those that the operator understands.
func annotationVerbs() []verb {
	return []verb{
		{
			name: "pause", short: "Pause updates and drift repair on Windows nodes",
			long:    "Pause updates and drift repair on nodes. Urgent inputs, such as a new CA of the API server, still reach them.",
			example: "  wmco pause winworker-x7k2p\n  wmco pause --all",
			set: func(corev1.Node, time.Time, []published.Input) (string, string) {
				return published.PausedAnnotation, "true"
			},
		},
		{
			name: "resume", short: "Resume paused Windows nodes",
			long:    "Remove the annotation that wmco pause has set. The nodes take part in the rollout again.",
			example: "  wmco resume winworker-x7k2p",
			set: func(corev1.Node, time.Time, []published.Input) (string, string) {
				return published.PausedAnnotation, ""
			},
		},
		{
			name: "retry", short: "Retry a bundle that failed or was rolled back",
			long:    "Retry the published bundle on nodes that rolled it back or could not apply it. Correct the cause first: wmco status NODE shows it.",
			example: "  wmco retry winworker-x7k2p",
			set: func(_ corev1.Node, now time.Time, _ []published.Input) (string, string) {
				return published.RetryAnnotation, now.UTC().Format(time.RFC3339Nano)
			},
		},
		{
			name: "adopt", short: "Adopt Windows nodes of the existing operator",
			long: "Let this operator take over nodes of the existing operator (docs/takeover.md). It examines the host of each node, lists what the\n" +
				"adoption changes (wmco status NODE), and adopts the node when the node gets a slot. A paused node waits until wmco resume.",
			example: "  wmco adopt winworker-x7k2p\n  wmco adopt --all",
			set: func(corev1.Node, time.Time, []published.Input) (string, string) {
				return published.AdoptAnnotation, published.AdoptTrue
			},
			applies: func(node corev1.Node) bool { return published.WaitsForAdoption(node.Annotations) },
			refuses: "is not a node of the existing operator that waits for adoption",
		},
		{
			name: "reboot", short: "Reboot Windows nodes",
			long: "Reboot the host of each node once. The operator drains the node as for any other change: at most rollout.maxUnavailable nodes at a\n" +
				"time, within PodDisruptionBudgets. The node reboots even if the rollout is paused or stopped; a paused node reboots after\n" +
				"wmco resume. wmco status shows the progress.",
			example: "  wmco reboot winworker-x7k2p\n  wmco reboot --all",
			set: func(_ corev1.Node, now time.Time, _ []published.Input) (string, string) {
				return published.RebootAnnotation, now.UTC().Format(time.RFC3339Nano)
			},
		},
		{
			name: "confirm", short: "Confirm a change that waits for your confirmation",
			long: "Roll out a held change: a deletion of all mirrors or of the settings, or a change after which no Pod can start\n" +
				"(NodeImageUnreachable). wmco status lists held changes. The confirmation is valid for the named nodes only, so you can try\n" +
				"one node first; the operator removes it when it is no longer needed. For deleted instances, see docs/held-changes.md.",
			example:  "  wmco confirm winworker-x7k2p --input mirrors\n  wmco confirm --all --input NodeImageUnreachable",
			set:      confirmationValue,
			confirms: true,
		},
	}
}

// confirmableInputs are the inputs that --input names.
func confirmableInputs() []string {
	return []string{string(published.InputMirrors), string(published.InputSettings), string(published.InputUnreachableImages)}
}

// confirmationValue adds inputs to those that a node has confirmed.
func confirmationValue(node corev1.Node, _ time.Time, inputs []published.Input) (key, value string) {
	key = published.ConfirmAnnotation
	if inputs[0] == published.InputUnreachableImages {
		key = published.ConfirmFindingAnnotation
	}
	all := published.ConfirmedNames(node.Annotations[key])
	for _, i := range inputs {
		if !slices.Contains(all, string(i)) {
			all = append(all, string(i))
		}
	}
	return key, strings.Join(all, ",")
}

// verbFlags are those of a verb.
type verbFlags struct {
	clusterFlags
	all      bool
	selector string
	dryRun   bool
	inputs   []string
	format   cli.Format
}

func verbCommand(a app, v verb) *cobra.Command {
	var f verbFlags
	statuses := []string{"0  done", "2  invalid usage, or no such node; nothing was changed", "3  the cluster cannot be reached, or refuses the change", "4  some nodes were annotated, at least one was not", "130  interrupted"}
	use := v.name + " NODE...|--all|-l SELECTOR"
	if v.confirms {
		use += " --input INPUT"
	}
	cmd := &cobra.Command{
		Use: use, Short: v.short, Long: v.long + "\n\nThe command sets an annotation of each node, prints it and returns at once." + cli.ExitHelp(statuses...), Example: v.example,
		RunE: func(cmd *cobra.Command, args []string) error { return f.runVerb(cmd.Context(), a, v, args) },
	}
	f.clusterFlags.addFlags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "every Windows node")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "the Windows nodes with these labels")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be set, and change nothing")
	if v.confirms {
		cmd.Flags().StringSliceVar(&f.inputs, "input", nil, "what to confirm: "+strings.Join(confirmableInputs(), ", "))
		_ = cmd.RegisterFlagCompletionFunc("input", cobra.FixedCompletions(confirmableInputs(), cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_, nodes, err := f.listNodes(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nodeNames(nodes), cobra.ShellCompDirectiveNoFileComp
	}
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	return cmd
}

// annotated is one node in the answer of a verb. An empty value means that the annotation is removed.
type annotated struct {
	Node       string `json:"node"`
	Annotation string `json:"annotation"`
	Value      string `json:"value"`
	DryRun     bool   `json:"dryRun,omitempty"`
}

// verbAnswer is the JSON of a verb.
type verbAnswer struct {
	Nodes []annotated `json:"nodes"`
}

func (f *verbFlags) runVerb(ctx context.Context, a app, v verb, names []string) error {
	inputs, err := f.confirmedInputs(v)
	if err != nil {
		return err
	}
	switch chosen := f.all || f.selector != ""; {
	case len(names) == 0 && !chosen:
		return cli.UsageError("name the nodes, or choose them with --all or --selector")
	case len(names) > 0 && chosen:
		return cli.UsageError("give either node names, or --all or --selector")
	}
	c, all, err := f.listNodes(ctx)
	if err != nil {
		return err
	}
	nodes, err := f.chooseNodes(all, names)
	if err != nil {
		return err
	}
	if nodes, err = v.applicableNodes(nodes, names); err != nil {
		return err
	}
	answer, changeErr := f.annotateNodes(ctx, c, v, nodes, func(n corev1.Node) (string, string) { return v.set(n, a.now(), inputs) })
	if err := f.printAnnotated(a, answer); err != nil {
		return err
	}
	switch {
	case changeErr == nil:
		return nil
	case len(answer) > 0:
		return &cli.ExitError{Status: cli.ExitPartial, Err: changeErr}
	}
	return &gather.UnreachableError{Err: changeErr}
}

// confirmedInputs are the inputs of --input, of one annotation.
func (f *verbFlags) confirmedInputs(v verb) ([]published.Input, error) {
	if !v.confirms {
		return nil, nil
	}
	var inputs []published.Input
	for _, name := range f.inputs {
		if !slices.Contains(confirmableInputs(), name) {
			return nil, cli.UsageError("--input %s: must be one of %s%s", name, strings.Join(confirmableInputs(), ", "), bundle.DidYouMean(name, confirmableInputs()))
		}
		inputs = append(inputs, published.Input(name))
	}
	if len(inputs) == 0 {
		return nil, cli.UsageError("say what to confirm with --input: one of %s", strings.Join(confirmableInputs(), ", "))
	}
	if len(inputs) > 1 && slices.Contains(inputs, published.InputUnreachableImages) {
		return nil, cli.UsageError("confirm %s alone: it is a finding, and the others are inputs", published.InputUnreachableImages)
	}
	return inputs, nil
}

// listNodes are the Windows nodes of the cluster.
func (f *clusterFlags) listNodes(ctx context.Context) (client.Client, []corev1.Node, error) {
	config, err := f.kube.RESTConfig(0)
	if err != nil {
		return nil, nil, err
	}
	return windowsNodes(ctx, config)
}

func windowsNodes(ctx context.Context, config *rest.Config) (client.Client, []corev1.Node, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, nil, &gather.UnreachableError{Err: fmt.Errorf("connecting to the cluster: %w", err)}
	}
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.MatchingLabels{corev1.LabelOSStable: windowsnode.Windows}); err != nil {
		return nil, nil, &gather.UnreachableError{Err: fmt.Errorf("listing Nodes: %w", err)}
	}
	return c, list.Items, nil
}

func nodeNames(nodes []corev1.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// chooseNodes returns the nodes that are named, or that the flags choose. A name that no Windows node has is refused
// before anything is changed.
func (f *verbFlags) chooseNodes(all []corev1.Node, names []string) ([]corev1.Node, error) {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, cli.UsageError("--selector: %w", err)
	}
	known := nodeNames(all)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, cli.UsageError("%s: no Windows node has this name%s", name, bundle.DidYouMean(name, known))
		}
	}
	nodes := slices.DeleteFunc(slices.Clone(all), func(n corev1.Node) bool {
		return len(names) > 0 && !slices.Contains(names, n.Name) || !selector.Matches(labels.Set(n.Labels))
	})
	if len(nodes) == 0 {
		return nil, cli.UsageError("the cluster has no such Windows node")
	}
	return nodes, nil
}

// applicableNodes returns the nodes that the verb is for. A named one that it is not for is refused.
func (v verb) applicableNodes(nodes []corev1.Node, names []string) ([]corev1.Node, error) {
	if v.applies == nil {
		return nodes, nil
	}
	left := slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool { return !v.applies(n) })
	for _, n := range nodes {
		if slices.Contains(names, n.Name) && !v.applies(n) {
			return nil, cli.UsageError("%s %s", n.Name, v.refuses)
		}
	}
	if len(left) == 0 {
		return nil, cli.UsageError("no Windows node that is chosen waits: each %s", v.refuses)
	}
	return left, nil
}

// annotateNodes changes the nodes one after the other and returns those that are changed. One that cannot be changed
// does not stop the others.
func (f *verbFlags) annotateNodes(ctx context.Context, c client.Client, v verb, nodes []corev1.Node, of func(corev1.Node) (key, value string)) ([]annotated, error) {
	defer cli.Orderly(ctx)()
	done := []annotated{}
	var errs []error
	for _, n := range nodes {
		key, value := of(n)
		if !f.dryRun {
			if !v.confirms {
				n.ResourceVersion = "" // its value does not depend on what the Node had
			}
			var err error
			if key, value, err = annotateNode(ctx, c, n, of); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		done = append(done, annotated{Node: n.Name, Annotation: key, Value: value, DryRun: f.dryRun})
	}
	return done, errors.Join(errs...)
}

// annotateNode sets one annotation, and returns which. A Node with a resourceVersion that has changed since is read
// again.
func annotateNode(ctx context.Context, c client.Client, n corev1.Node, of func(corev1.Node) (key, value string)) (key, value string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		key, value = of(n)
		err := patchAnnotation(ctx, c, n, key, value)
		if apierrors.IsConflict(err) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(&n), &n); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return key, value, fmt.Errorf("annotating node %s: %w", n.Name, err)
	}
	return key, value, nil
}

// patchAnnotation sets one annotation; an empty value removes it. If n has a resourceVersion, any other change of the
// Node since is a conflict.
func patchAnnotation(ctx context.Context, c client.Client, n corev1.Node, key, value string) error {
	change := map[string]any{key: nil}
	if value != "" {
		change[key] = value
	}
	metadata := map[string]any{"annotations": change}
	if n.ResourceVersion != "" {
		metadata["resourceVersion"] = n.ResourceVersion
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	node := corev1.Node{}
	node.Name = n.Name
	return c.Patch(ctx, &node, client.RawPatch(types.MergePatchType, data))
}

func (f *verbFlags) printAnnotated(a app, answer []annotated) error {
	if f.format == cli.JSON {
		return cli.WriteJSON(a.stdout, verbAnswer{answer})
	}
	note := map[bool]string{true: " (dry run)"}[f.dryRun]
	for _, n := range answer {
		value := "-" // as kubectl annotate removes one
		if n.Value != "" {
			value = "=" + n.Value
		}
		cli.Printf(a.stdout, "node/%s annotated: %s%s%s\n", n.Node, n.Annotation, value, note)
	}
	return nil
}
