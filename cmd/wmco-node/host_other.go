//go:build !windows

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/folderhost"
)

// rootFlag names the folder with the simulated machine.
func rootFlag(cmd *cobra.Command, a *app) {
	cmd.PersistentFlags().StringVar(&a.root, "root", a.root, "folder with a simulated machine (this is not Windows)")
}

func openHost(root string) (applier.Host, error) {
	if root == "" {
		return nil, errors.New("this is not Windows: name the folder of a simulated machine with --root")
	}
	return folderhost.New(root)
}

// asService: a simulated service control manager starts nothing, so there is nobody to answer to.
func asService(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
