//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"wmco/applier/hosttest/folderhost"
	"wmco/bundle"
	"wmco/internal/cli"
)

// machineCommand is for simulated machines only.
func machineCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Make and boot a simulated machine (not on Windows)",
		Long:  "Make a machine in the folder that --root names, and boot it." + cli.ExitHelp("0  done", "2  usage"),
	}
	var factsFile string
	create := &cobra.Command{
		Use:   "create",
		Short: "Make a machine with an empty drive",
		Long: `Make a machine with an empty drive. Beside its folder C lies .machine with everything that is no file, and with
behaviour.json, which says what goes wrong on it.` + cli.ExitHelp("0  done", "2  there is one already, or the facts cannot be read"),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.createMachine(factsFile) },
	}
	create.Flags().StringVar(&factsFile, "facts", "", "file with what the machine says of itself, as `wmco-node facts` prints it")
	boot := &cobra.Command{
		Use:   "boot",
		Short: "Boot the machine",
		Long:  "Stop everything, let pending settings come into force, and start what starts by itself." + cli.ExitHelp("0  done", "2  there is no machine"),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.bootMachine(cmd.Context()) },
	}
	cmd.AddCommand(create, boot)
	return cmd
}

func (a *app) createMachine(factsFile string) error {
	if a.root == "" {
		return errNoRoot
	}
	facts := bundle.Facts{Schema: bundle.FactsSchema, HostName: "windows", Addresses: []string{"10.0.0.10"}, OSBuild: "10.0.20348"}
	facts.DefaultRoute = bundle.DefaultRoute{Address: "10.0.0.10", Gateway: "10.0.0.1"}
	if factsFile != "" {
		f, err := os.Open(factsFile)
		if err != nil {
			return err
		}
		all, err := bundle.DecodeFacts(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("reading %s: %w", factsFile, err)
		}
		if len(all) != 1 {
			return fmt.Errorf("reading %s: it tells of %d machines, not of one", factsFile, len(all))
		}
		facts = all[0]
	}
	host, err := folderhost.Create(a.root, folderhost.Options{Facts: facts})
	if err != nil {
		return err
	}
	return host.Close()
}

func (a *app) bootMachine(ctx context.Context) error {
	host, err := openFolder(a.root)
	if err != nil {
		return err
	}
	return errors.Join(host.Restart(ctx), host.Close())
}
