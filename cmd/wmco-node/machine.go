//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/folderhost"
)

// machineCommand is for simulated hosts only.
func machineCommand(s *folder) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Create and boot a simulated host (not on Windows)",
		Long:  "Create a host in the folder that --root names, and boot it." + cli.ExitHelp("0  done", "2  invalid usage"),
	}
	var factsFile string
	create := &cobra.Command{
		Use:   "create",
		Short: "Create a host with an empty drive",
		Long: `Create a host with an empty drive. Beside its folder C is .machine, which has everything that is not a file, and
behaviour.json, which lists what fails on the host.` + cli.ExitHelp(
			"0  done", "2  the host exists already, or the facts cannot be read",
		),
		Args: cli.Usage{}.Check,
		RunE: func(*cobra.Command, []string) error { return s.createMachine(factsFile) },
	}
	create.Flags().StringVar(&factsFile, "facts", "", "file with the facts of the host, as `wmco-node facts` prints them")
	boot := &cobra.Command{
		Use:   "boot",
		Short: "Boot the host",
		Long: "Stop everything, activate pending settings, and start the services that start automatically." +
			cli.ExitHelp("0  done", "2  the host does not exist"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.bootMachine(cmd.Context()) },
	}
	cmd.AddCommand(create, boot)
	cli.Group(cmd)
	return cmd
}

func (s *folder) createMachine(factsFile string) error {
	if s.root == "" {
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
			return fmt.Errorf("reading %s: it has the facts of %d hosts, not of one", factsFile, len(all))
		}
		facts = all[0]
	}
	host, err := folderhost.Create(s.root, folderhost.Options{Facts: facts})
	if err != nil {
		return err
	}
	return host.Close()
}

func (s *folder) bootMachine(ctx context.Context) error {
	host, err := s.openFolder()
	if err != nil {
		return err
	}
	return errors.Join(host.Restart(ctx), host.Close())
}
