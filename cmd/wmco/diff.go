package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render/preview"
	"wmco/render/review"
	"wmco/report/forecast"
)

// diffFlags are those of `wmco diff`.
type diffFlags struct {
	remoteFlags
	against []string
	golden  string
	failOn  failOn
	format  cli.Format
}

func diffCommand(a app) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use: "diff --from PATH|-|cluster[:CONTEXT] (--against PATH ... | --golden DIR | --host " +
			"[USER@]ADDR[:PORT] ...) [--node NAME | --instance ADDRESS | --all]",
		Short: "Show what would change on Windows nodes, what it costs, and which objects caused it",
		Long: `Compare the desired state of nodes, computed from --from, with one of: other objects, or a folder written by wmco render --out
(--against); a golden folder (--golden); the actual state of hosts over SSH (--host). Each change is printed with its impact and the
objects that caused it. Secrets are masked. Findings that the change adds or resolves come first. Only --install changes something
on hosts.

Against a live cluster, wmco also predicts the rollout: which nodes restart services, are drained or reboot, in which order, and how
long it takes (from the duration of earlier updates). Without permission to list Secrets in the operator's namespace, the impact is
an estimate from the objects. Nodes that wait for adoption are listed, with the changes of the adoption if the operator has examined
the host.` +
			cli.ExitHelp(
				"0  nothing differs", "1  something differs",
				"2  invalid usage, inputs with errors, or new findings at or above --fail-on",
				"3  the cluster, a host or the registry of --payload cannot be reached, or a host has no node agent",
				"4  the agent's records on a host cannot be read, or a file is locked: run the command again", "130  interrupted",
			),
		Example: `  wmco diff --from cluster --from new-mirrors.yaml --against cluster
  wmco diff --from must-gather-today --against must-gather-yesterday -o markdown
  wmco diff --from manifests --golden windows-nodes
  wmco diff --from cluster --host 10.0.0.5 --node-program wmco-node.exe`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.inputFlags.addFlags(cmd)
	f.hostFlags.addFlags(cmd)
	f.addInstall(cmd)
	cmd.Flags().StringArrayVar(
		&f.against, "against", nil,
		"what to compare with: objects as for --from, or a folder that render --out wrote; repeatable",
	)
	cmd.Flags().StringVar(&f.golden, "golden", "", "compare with the expected bundles in want/ of this golden folder")
	f.failOn.addFlag(cmd, bundle.SeverityError)
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON, cli.Markdown)
	sides := []string{"against", "golden", "host"}
	program := needsProgram()
	program.With = "host"
	cli.Expect(cmd, cli.Usage{
		Needs: []cli.Need{
			needsObjects(),
			{Flags: sides, Text: "say what to compare with: --against PATH, --golden DIR or --host [USER@]ADDR[:PORT]"},
			program,
			{Flags: []string{"host"}, With: "install", Text: "name the hosts of --install with --host [USER@]ADDR[:PORT]"},
		},
		Alone: [][]string{sides, oneChoice()},
	})
	return cmd
}

func (f *diffFlags) run(ctx context.Context, a app) error {
	if len(f.hosts) > 0 {
		return f.diffHosts(ctx, a)
	}
	return answerRefused(a, f.format, f.compareSides(ctx, a))
}

// compareSides compares with the other side that the flags name.
func (f *diffFlags) compareSides(ctx context.Context, a app) error {
	hosts, after, err := f.renderAfter(ctx, a)
	if err != nil {
		return err
	}
	side, expected, err := f.renderBefore(ctx, a, after)
	if err != nil {
		return err
	}
	nodes := golden.Reviewed(after)
	omitKeys(side)
	r := reviewed{Review: review.Compare(side, nodes)}
	if expected.reader != nil {
		if r.Rollout, err = expected.forecastRollout(ctx, a, hosts, after); err != nil {
			return err
		}
	}
	return printReview(a, f.format, r, f.failOn)
}

// diffHosts compares with the state of hosts.
func (f *diffFlags) diffHosts(ctx context.Context, a app) error {
	if f.format == cli.Markdown {
		return cli.UsageError("-o %s goes with --against and --golden; --host has text and json", f.format)
	}
	return f.compare(ctx, a, f.format, (*remote.Agent).Observe)
}

// renderAfter renders the nodes of --from.
func (f *diffFlags) renderAfter(ctx context.Context, a app) (*desired.Hosts, []desired.Rendered, error) {
	inputs := f.inputFlags
	inputs.keyless = true // no change decides the keys, and a forecast keeps those that nodes have
	inputs.all = !inputs.hostChosen()
	hosts, err := inputs.readHosts(ctx, a, nil)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := inputs.chooseHosts(hosts)
	if err != nil {
		return nil, nil, err
	}
	list, findings, err := hosts.RenderBundles(nodes)
	if err == nil && findings.Refused() {
		err = refusedInputs(a, "", findings)
	}
	return hosts, list, err
}

// live is a cluster to compare with. It has the nodes that a rollout would change.
type live struct {
	reader    objects.Reader
	namespace string
	before    []desired.Rendered
}

// renderBefore is the side to compare with, and its cluster if it is one.
func (f *diffFlags) renderBefore(ctx context.Context, a app, after []desired.Rendered) ([]review.Node, live, error) {
	if f.golden != "" {
		nodes, err := goldenNodes(f.golden)
		return f.chosenNode(nodes, after), live{}, err
	}
	if len(f.against) == 1 && !isLive(f.against[0]) {
		nodes, err := golden.Previewed(f.against[0])
		if errors.Is(err, preview.ErrNotPreview) {
			return nil, live{}, fmt.Errorf("reading %q: %w", f.against[0], err)
		}
		if err == nil && len(nodes) > 0 {
			return f.chosenNode(nodes, after), live{}, nil
		}
	}
	other := *f
	other.from = f.against
	_, before, err := other.renderAfter(ctx, a)
	if err != nil {
		return nil, live{}, err
	}
	for _, source := range slices.Backward(f.against) {
		if isLive(source) {
			reader, _, err := gather.OpenSources([]string{source}, nil, f.kube)
			return golden.Reviewed(before), live{reader: reader, namespace: f.namespace, before: before}, err
		}
	}
	return golden.Reviewed(before), live{}, nil
}

// omitKeys removes the keys of an operator, which a preview of a cluster has and which are not compared.
func omitKeys(nodes []review.Node) {
	for i := range nodes {
		files := &nodes[i].Bundle.Cluster.Files
		*files = slices.DeleteFunc(slices.Clone(*files), func(f bundle.File) bool { return f.Path == bundle.SigningKeysFile })
	}
}

// forecastRollout predicts the rollout of the change.
func (l live) forecastRollout(
	ctx context.Context, a app, hosts *desired.Hosts, after []desired.Rendered,
) (*forecast.Forecast, error) {
	f, findings, err := forecast.Make(ctx, l.reader, forecast.Change{
		Before: l.before, After: after, Platform: hosts.Cluster.Platform, Settings: hosts.Cluster.Settings, Namespace: l.namespace, Now: a.now(),
	})
	switch {
	case err != nil:
		return nil, &gather.UnreachableError{Err: fmt.Errorf("reading what nodes have: %w", err)}
	case findings.Refused():
		return nil, refusedInputs(a, "", findings)
	}
	return &f, nil
}

// chosenNode keeps the chosen node of a preview of several.
func (f *diffFlags) chosenNode(nodes []review.Node, after []desired.Rendered) []review.Node {
	if !f.hostChosen() || len(nodes) < 2 {
		return nodes
	}
	return slices.DeleteFunc(nodes, func(n review.Node) bool {
		return !slices.ContainsFunc(after, func(a desired.Rendered) bool {
			return n.Name == a.Node.ID() || n.Name == a.Node.Address
		})
	})
}

// reviewed is a review, and the rollout of what it shows where that is known.
type reviewed struct {
	review.Review
	Rollout *forecast.Forecast `json:"rollout,omitempty"`
}

// answerRefused answers with the findings that refuse the inputs: in JSON a program reads them, not the text on stderr.
func answerRefused(a app, f cli.Format, err error) error {
	refusal := (*refusedError)(nil)
	if f != cli.JSON || !errors.As(err, &refusal) {
		return err
	}
	r := review.Compare(nil, nil)
	r.Findings.Added = findingsAnswer(refusal.findings)
	r = r.Refuse(bundle.SeverityError)
	return cmp.Or(cli.WriteJSON(a.stdout, reviewed{Review: r}), err)
}

// printReview answers with a review. Findings that the change adds and --fail-on names are status 2, differences status
// 1.
func printReview(a app, f cli.Format, r reviewed, limit failOn) error {
	var text string
	var err error
	r.Review = r.Refuse(bundle.Severity(limit))
	switch f {
	case cli.JSON:
		err = cli.WriteJSON(a.stdout, r)
	case cli.Markdown:
		if text = r.Markdown(); r.Rollout != nil && !r.Rollout.IsEmpty() {
			text += r.Rollout.Markdown()
		}
	case cli.Text:
		if text = r.Text(); r.Rollout != nil && !r.Rollout.IsEmpty() {
			text += "\n" + r.Rollout.Text()
		}
	case cli.YAML, cli.Wide, cli.Name: // no formats of this command
	}
	if err == nil && text != "" {
		err = palette{a.color && f == cli.Text}.printDiff(a.stdout, text)
	}
	if err == nil {
		err = limit.judgeChange(r.Review)
	}
	if err == nil && r.Differs() {
		return cli.Exit(cli.ExitDiffers)
	}
	return err
}
