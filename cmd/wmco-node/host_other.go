//go:build !windows

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/hosttest/folderhost"
)

// platformCommands adds what only simulated machines have.
func platformCommands(cmd *cobra.Command, a *app) {
	cmd.PersistentFlags().StringVar(&a.root, "root", a.root, "folder with a simulated machine (this is not Windows)")
	cmd.AddCommand(machineCommand(a))
}

var errNoRoot = errors.New("this is not Windows: name the folder of a simulated machine with --root")

func openHost(root string) (applier.Host, error) { return openFolder(root) }

func openFolder(root string) (*folderhost.Host, error) {
	if root == "" {
		return nil, errNoRoot
	}
	return folderhost.New(root, folderhost.Options{})
}

// asService runs at once: a simulated service control manager starts nothing, so there is nobody to answer to.
func asService(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
