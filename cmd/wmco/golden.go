package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render/preview"
	"wmco/render/review"
)

// oneFolder is what the commands about golden folders are given.
func oneFolder() cli.Usage { return cli.Usage{Args: []string{"DIR"}} }

func goldenCommand(a app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden",
		Short: "Keep the desired state of Windows nodes in git, and review it in pull requests",
		Long: `A golden folder has golden.yaml and want/, the output of render --all --out. Files that nodes share are stored once
(want/nodes_joined), those of one node below it (want/nodes_joined/nodes/NAME).

    from:              # the --from list, relative to the folder; later sources override earlier ones
    - ../snapshot
    - ../changes
    facts: facts.json  # optional, the facts that hosts report
    payload: payload   # optional, a folder written by make payload
    nodes:             # optional, names or addresses; all without
    acceptedFindings:  # optional, warnings and infos that fail no check (docs/held-changes.md)
    - finding: NodeNameMismatch
      object: Node/win-a
      reason: renamed on purpose in May
      owner: windows-team

check renders the inputs and compares, byte for byte; update rewrites want/.`,
	}
	cmd.AddCommand(goldenCheckCommand(a), goldenUpdateCommand(a))
	cli.Group(cmd)
	return cmd
}

func goldenCheckCommand(a app) *cobra.Command {
	var f cli.Format
	var limit failOn
	var strict bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Compare the rendered inputs with the expected bundles of a golden folder",
		Long: `Render the golden folder's inputs and compare with want/, byte for byte. Differences are printed as by wmco diff, added and resolved
findings first; -o markdown is a comment for a pull request. Files of want/ that were edited by hand are named.` +
			cli.ExitHelp(
				"0  the same", "1  something differs, or there is no want/ yet: wmco golden update DIR",
				"2  invalid usage, inputs with errors, a node that the inputs lack, or new findings at or above --fail-on",
				"130  interrupted",
			),
		Args: oneFolder().Check,
		RunE: func(cmd *cobra.Command, args []string) error {
			return answerRefused(a, f, goldenCheck(cmd.Context(), a, f, limit, goldenFolder{args[0], strict}))
		},
	}
	addStrict(cmd, &strict, true)
	limit.addFlag(cmd, bundle.SeverityWarning)
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON, cli.Markdown)
	return cmd
}

func goldenUpdateCommand(a app) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "update DIR",
		Short: "Rewrite the expected bundles of a golden folder",
		Long: "Render the golden folder's inputs, and make want/ exactly the result." +
			cli.ExitHelp(
				"0  done",
				"2  invalid usage, inputs with errors, a node that the inputs lack, or no node; nothing was written",
				"130  interrupted",
			),
		Args: oneFolder().Check,
		RunE: func(cmd *cobra.Command, args []string) error {
			return goldenUpdate(cmd.Context(), a, goldenFolder{args[0], strict})
		},
	}
	addStrict(cmd, &strict, true)
	return cmd
}

// goldenFolder is a golden folder, and how its inputs are judged.
type goldenFolder struct {
	dir    string
	strict bool
}

// goldenRender renders the nodes of a golden folder. Refused inputs are printed and end with status 2.
func goldenRender(ctx context.Context, a app, folder goldenFolder) ([]desired.Rendered, error) {
	c, err := golden.Load(folder.dir)
	if err != nil {
		return nil, err
	}
	c.Strict = folder.strict
	hosts, err := c.Read(ctx, folder.dir, nil)
	if err != nil {
		return nil, err
	}
	list, findings, err := c.Render(hosts)
	if errors.Is(err, golden.ErrRefused) {
		return nil, refusedInputs(a, "", findings)
	}
	return list, err
}

// goldenUpdate makes want/ the rendered bundles.
func goldenUpdate(ctx context.Context, a app, folder goldenFolder) error {
	list, err := goldenRender(ctx, a, folder)
	if err != nil {
		return err
	}
	files, err := golden.WantFiles(list)
	if err != nil {
		return err
	}
	old, err := golden.ReadWant(folder.dir)
	if err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	if err := golden.WriteWant(ctx, folder.dir, files); err != nil {
		return err
	}
	if len(old) > 0 && !golden.HasGroups(old) && golden.HasGroups(golden.Tree(files)) {
		cli.Printf(
			a.stderr, "%s had one folder for each node; it has one for each group of equal nodes now\n",
			golden.WantDir(folder.dir),
		)
	}
	wrote(a, len(list), golden.WantDir(folder.dir))
	return nil
}

// wantTree is what want/ should be, in the form that it has: an earlier version wrote each node whole.
func wantTree(a app, dir string, want map[string][]byte, list []desired.Rendered) (map[string][]byte, error) {
	files, err := golden.WantFiles(list)
	if err != nil || len(want) == 0 || golden.HasGroups(want) || !golden.HasGroups(golden.Tree(files)) {
		return golden.Tree(files), err
	}
	cli.Printf(
		a.stderr,
		"%s has one folder for each node: wmco golden update %s writes one for each group of equal nodes, so that fewer files change\n",
		golden.WantDir(dir), dir,
	)
	files, err = golden.Files(list, preview.Options{})
	return golden.Tree(files), err
}

// goldenCheck compares bundles, and then bytes: files beside the bundles (findings, provenance) may differ alone.
func goldenCheck(ctx context.Context, a app, f cli.Format, limit failOn, folder goldenFolder) error {
	dir := folder.dir
	list, err := goldenRender(ctx, a, folder)
	if err != nil {
		return err
	}
	want, err := golden.ReadWant(dir)
	if err != nil {
		return err
	}
	wanted, err := wantTree(a, dir, want, list)
	if err != nil {
		return err
	}
	after := golden.Reviewed(list)
	before, err := golden.PreviewedTree(want)
	differences := golden.Differences(want, wanted)
	if errors.Is(err, preview.ErrNotPreview) {
		return outdatedError(a, dir, golden.WantDir(dir)+" was edited by hand", differences)
	}
	if err != nil {
		return err
	}
	if len(want) == 0 {
		limit = failOn(bundle.SeverityError) // there is nothing yet that the findings were added to
	}
	err = printReview(a, f, reviewed{Review: review.Compare(before, after)}, limit)
	switch {
	case len(want) == 0 && cli.StatusOf(err) == cli.ExitDiffers:
		return outdatedError(a, dir, golden.WantDir(dir)+" does not exist or is empty", nil)
	case err != nil || len(differences) == 0:
		return err
	}
	return outdatedError(a, dir, "no node changes, but files of "+golden.WantDir(dir)+" differ from the rendered ones", differences)
}

// outdatedError is the end of a check that the review does not explain, or not alone. Each of the differences is
// printed.
func outdatedError(a app, dir, why string, differences []string) error {
	for _, d := range differences {
		cli.Printf(a.stderr, "%s\n", d)
	}
	return &cli.ExitError{Status: cli.ExitDiffers, Err: errors.New(why + ": run wmco golden update " + dir)}
}

// goldenNodes reads the want/ of a golden folder. Before the first update it has no nodes.
func goldenNodes(dir string) ([]review.Node, error) {
	if _, err := golden.Load(dir); err != nil {
		return nil, err
	}
	return golden.PreviewedWant(dir)
}
