package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render/preview"
	"wmco/render/review"
)

// diffFlags are those of `wmco diff`.
type diffFlags struct {
	remoteFlags
	against []string
	golden  string
	format  cli.Format
}

func diffCommand(a app) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff --from PATH|-|cluster[:CONTEXT] (--against PATH ... | --golden DIR | --host [USER@]ADDR[:PORT] ...) [--node NAME | --instance ADDRESS | --all]",
		Short: "Show what would change on Windows nodes, what it costs, and which objects caused it",
		Long: `Compare the desired state of nodes by --from with an earlier one: by other objects (--against, as --from), by a folder that
render --out wrote (also --against), or by a golden folder (--golden); or with the state of hosts (--host, over SSH). Every
change is printed with its impact and the objects that caused it; a removal with those that caused the entry. Secrets are
masked. All nodes are compared unless one is chosen. Nothing is changed on hosts. One without the node agent is reported,
unless --install copies it there.` +
			cli.ExitHelp("0  nothing differs", "1  something differs", "2  usage, or inputs with findings of severity error", "3  the cluster or a host cannot be reached, or a host has no node agent", "4  records on a host cannot be read, or a file is locked: run it again", "130  interrupted"),
		Example: `  wmco diff --from cluster --from new-mirrors.yaml --against cluster
  wmco diff --from must-gather-today --against must-gather-yesterday -o markdown
  wmco diff --from manifests --golden windows-nodes
  wmco diff --from cluster --host 10.0.0.5 --node-program wmco-node.exe`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.inputFlags.add(cmd)
	f.hostFlags.add(cmd)
	f.addInstall(cmd)
	cmd.Flags().StringArrayVar(&f.against, "against", nil, "what to compare with: objects as for --from, or a folder that render --out wrote; repeatable")
	cmd.Flags().StringVar(&f.golden, "golden", "", "compare with the want/ of a golden folder")
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
		return f.observe(ctx, a)
	}
	after, err := f.side(ctx, a)
	if err != nil {
		return err
	}
	before, err := f.before(ctx, a, after)
	if err != nil {
		return err
	}
	return printReview(a, f.format, review.Compare(before, after))
}

// observe compares with the state of hosts.
func (f *diffFlags) observe(ctx context.Context, a app) error {
	if f.format == cli.Markdown {
		return cli.UsageError("-o markdown goes with --against and --golden; --host has text and json")
	}
	return f.compare(ctx, a, f.format, (*remote.Agent).Observe)
}

// side renders the nodes of --from.
func (f *diffFlags) side(ctx context.Context, a app) ([]review.Node, error) {
	inputs := f.inputFlags
	inputs.all = !inputs.chosen()
	bundles, findings, err := inputs.render(ctx, a, nil)
	if err != nil {
		return nil, err
	}
	if findings.Refused() {
		return nil, refused(a, "", findings)
	}
	return golden.Reviewed(bundles), nil
}

// before is the side to compare with.
func (f *diffFlags) before(ctx context.Context, a app, after []review.Node) ([]review.Node, error) {
	if f.golden != "" {
		nodes, err := goldenNodes(f.golden)
		return f.only(nodes, after), err
	}
	if len(f.against) == 1 {
		nodes, err := golden.Previewed(f.against[0])
		if errors.Is(err, preview.ErrNotPreview) {
			return nil, fmt.Errorf("reading %q: %w", f.against[0], err)
		}
		if err == nil && len(nodes) > 0 {
			return f.only(nodes, after), nil
		}
	}
	other := *f
	other.from = f.against
	return other.side(ctx, a)
}

// only keeps the chosen node of a preview of several.
func (f *diffFlags) only(nodes, after []review.Node) []review.Node {
	if !f.chosen() || len(nodes) < 2 {
		return nodes
	}
	return slices.DeleteFunc(nodes, func(n review.Node) bool {
		return !slices.ContainsFunc(after, func(a review.Node) bool { return n.Name == a.Name || n.Name == a.Address })
	})
}

// printReview answers with a review; differences are status 1.
func printReview(a app, f cli.Format, r review.Review) error {
	var err error
	switch f {
	case cli.JSON:
		err = cli.WriteJSON(a.stdout, r)
	case cli.Markdown:
		err = cli.PrintText(a.stdout, r.Markdown())
	case cli.Text:
		err = cli.PrintText(a.stdout, r.Text())
	}
	if err == nil && r.Differs() {
		return cli.Exit(cli.ExitDiffers)
	}
	return err
}
