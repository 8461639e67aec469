package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"wmco/golden"
	"wmco/render/preview"
	"wmco/render/review"
)

func goldenCommand(a app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden",
		Short: "Keep what Windows nodes should be in git, and review it in pull requests",
		Long: `A golden folder holds golden.yaml and want/, what render --all --out would write:

    from:              # the --from list, relative to the folder; a later one wins
    - ../cluster
    - ../changes
    facts: facts.json  # optional, what machines say of themselves
    payload: payload   # optional, a folder that make payload wrote: digests of executables
    nodes:             # optional, names or addresses; all without

check renders anew and compares, byte for byte; update rewrites want/.`,
	}
	cmd.AddCommand(goldenCheckCommand(a), goldenUpdateCommand(a))
	return cmd
}

func goldenCheckCommand(a app) *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Compare what is rendered with what a golden folder wants",
		Long: `Render the golden folder's inputs and compare with want/, byte for byte. What differs is told as wmco diff tells it; -o
markdown is a comment for a pull request.` + exitHelp("0  the same", "1  something differs: wmco golden update DIR", "2  usage, or inputs with findings of severity error", "130  interrupted"),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return goldenCheck(cmd.Context(), a, f, args[0]) },
	}
	addFormats(cmd, &f, formatMarkdown)
	return cmd
}

func goldenUpdateCommand(a app) *cobra.Command {
	return &cobra.Command{
		Use:   "update DIR",
		Short: "Rewrite what a golden folder wants",
		Long:  "Render the golden folder's inputs and make want/ hold exactly what comes out." + exitHelp("0  done", "2  usage, or inputs with findings of severity error: nothing is written", "130  interrupted"),
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, tree, err := goldenRender(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			files := make([]preview.File, 0, len(tree))
			for _, path := range slices.Sorted(maps.Keys(tree)) {
				files = append(files, preview.File{Path: path, Data: tree[path]})
			}
			return writeFolder(golden.WantDir(args[0]), files)
		},
	}
}

// goldenRender renders a golden folder: its nodes, and its files. Refused inputs are told and end with status 2.
func goldenRender(ctx context.Context, a app, dir string) ([]review.Node, map[string][]byte, error) {
	c, err := golden.Load(dir)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	r, err := c.Gather(ctx, dir)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	options, err := c.Options(ctx, dir)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	list, findings, err := c.Render(r, options)
	if errors.Is(err, golden.ErrRefused) {
		printFindings(a.stderr, palette{}, findings)
		return nil, nil, &exitError{exitUsage, fmt.Errorf("%w: %s", err, count(findings))}
	}
	if err != nil {
		return nil, nil, err
	}
	tree, err := golden.Tree(list)
	return golden.Reviewed(list), tree, err
}

// goldenCheck compares bundles, and then bytes: files beside the bundles (findings, provenance) may differ alone.
func goldenCheck(ctx context.Context, a app, f format, dir string) error {
	after, tree, err := goldenRender(ctx, a, dir)
	if err != nil {
		return err
	}
	before, err := goldenNodes(dir)
	if err != nil {
		return err
	}
	r := review.Compare(before, after)
	if err := printReview(a, f, r); err != nil {
		return err
	}
	want, err := golden.ReadTree(golden.WantDir(dir))
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if maps.EqualFunc(want, tree, bytes.Equal) {
		return nil
	}
	return &exitError{exitDiffers, errors.New("no node changes, but findings or provenance do: wmco golden update " + dir)}
}
