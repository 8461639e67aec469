package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/golden"
	"wmco/render/review"
)

// diffFlags are those of `wmco diff`.
type diffFlags struct {
	inputFlags
	hostFlags
	against []string
	golden  string
	format  format
}

func diffCommand(a app) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff --from PATH|-|cluster[:CONTEXT] (--against PATH ... | --golden DIR | --host [USER@]ADDR[:PORT] ...) [--node NAME | --instance ADDRESS | --all]",
		Short: "Show what would change on Windows nodes, what it costs, and who caused it",
		Long: `Compare what the nodes should be by --from with what they were: by other objects (--against, as --from), by a folder
that render --out wrote (--against too), or by a golden folder (--golden), or with what the machines are now (--host, over SSH). Every change is told with its impact and the
objects that caused it; for a removal, those that it came from. Secrets are masked. All nodes are compared unless one is
chosen. A machine gets the node program if it lacks it, and is not changed otherwise.` +
			exitHelp("0  nothing differs", "1  something differs", "2  usage, or inputs with findings of severity error", "3  the cluster or a machine cannot be reached", "4  records on a machine cannot be read, or a file is locked: run it again", "130  interrupted"),
		Example: `  wmco diff --from cluster --from new-mirrors.yaml --against cluster
  wmco diff --from must-gather-today --against must-gather-yesterday -o markdown
  wmco diff --from manifests --golden windows-nodes
  wmco diff --from cluster --host 10.0.0.5 --node-program wmco-node.exe`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.inputFlags.add(cmd)
	f.hostFlags.add(cmd)
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "what to compare with: objects as for --from, or a folder that render --out wrote; repeatable")
	cmd.Flags().StringVar(&f.golden, "golden", "", "compare with what a golden folder wants")
	cmd.MarkFlagsMutuallyExclusive("against", "golden", "host")
	cmd.MarkFlagsOneRequired("against", "golden", "host")
	addFormats(cmd, &f.format, formatMarkdown)
	return cmd
}

func (f *diffFlags) run(ctx context.Context, a app) error {
	if len(f.hosts) > 0 {
		return f.machines(ctx, a)
	}
	after, err := f.side(ctx, a)
	if err != nil {
		return err
	}
	before, err := f.before(ctx, a)
	if err != nil {
		return err
	}
	return printReview(a, f.format, review.Compare(before, after))
}

// machines compares with what the machines are now.
func (f *diffFlags) machines(ctx context.Context, a app) error {
	if f.format == formatMarkdown {
		return usageError("-o markdown compares with --against and --golden; with --host there are text and json")
	}
	m := machineFlags{inputFlags: f.inputFlags, hostFlags: f.hostFlags}
	return m.compare(ctx, a, f.format, (*remote.Agent).Observe)
}

// side renders the nodes of --from.
func (f *diffFlags) side(ctx context.Context, a app) ([]review.Node, error) {
	inputs := f.inputFlags
	inputs.all = inputs.all || inputs.node == "" && inputs.instance == ""
	bundles, findings, err := renderSelected(ctx, a, &inputs)
	if err != nil {
		return nil, err
	}
	if findings.Refused() {
		printFindings(a.stderr, palette{}, findings)
		return nil, &exitError{exitUsage, fmt.Errorf("the inputs are refused: %s", count(findings))}
	}
	nodes := make([]review.Node, len(bundles))
	for i, r := range bundles {
		nodes[i] = review.Node{Name: r.node.ID(), Address: r.node.Address, Bundle: r.bundle.Bundle}
	}
	return nodes, nil
}

// before is the side to compare with.
func (f *diffFlags) before(ctx context.Context, a app) ([]review.Node, error) {
	if f.golden != "" {
		return goldenNodes(f.golden)
	}
	if len(f.against) == 1 {
		nodes, err := previewNodes(f.against[0])
		if err == nil {
			return f.chosen(nodes), nil
		}
		if !errors.Is(err, errNoPreview) {
			return nil, err
		}
	}
	other := *f
	other.from = f.against
	return other.side(ctx, a)
}

// chosen keeps the chosen node of a preview of several.
func (f *diffFlags) chosen(nodes []review.Node) []review.Node {
	name := firstNonEmpty(f.node, f.instance)
	if name == "" || len(nodes) < 2 {
		return nodes
	}
	return slices.DeleteFunc(nodes, func(n review.Node) bool { return n.Name != name })
}

// errNoPreview says that a path holds no preview; it may hold objects.
var errNoPreview = errors.New("no preview there")

// previewNodes reads a folder that render --out wrote.
func previewNodes(dir string) ([]review.Node, error) {
	tree, err := golden.ReadTree(dir)
	if err != nil {
		return nil, errors.Join(errNoPreview, err)
	}
	nodes, err := golden.Previewed(tree)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("reading %q: %w", dir, err)}
	}
	if len(nodes) == 0 {
		return nil, errNoPreview
	}
	return nodes, nil
}

// goldenNodes reads what a golden folder wants. One that wants nothing yet has no nodes.
func goldenNodes(dir string) ([]review.Node, error) {
	if _, err := golden.Load(dir); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	nodes, err := previewNodes(golden.WantDir(dir))
	if errors.Is(err, errNoPreview) {
		return nil, nil
	}
	return nodes, err
}

// printReview answers with a review; what differs is status 1.
func printReview(a app, f format, r review.Review) error {
	var err error
	switch f {
	case formatJSON:
		err = writeJSON(a.stdout, r)
	case formatMarkdown:
		_, err = fmt.Fprint(a.stdout, r.Markdown())
	case formatText:
		_, err = fmt.Fprint(a.stdout, r.Text())
	}
	if err != nil {
		return err
	}
	if r.Differs() {
		return &exitError{status: exitDiffers}
	}
	return nil
}
