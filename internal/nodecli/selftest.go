package nodecli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/internal/cli"
	"wmco/layout"
)

func selftestCommand(p Program) *cobra.Command {
	var format cli.Format
	var onNode bool
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Test whether this Windows does what the node agent relies on",
		Long: `Test each promise that the node agent relies on, on this machine: files and who may read them, services, variables, trusted CAs,
routes, firewall rules, HNS networks. It is for a machine that you can spare. It uses names of its own only: services
` + selftest.ServiceA + `, -b and -c, the folder ` + selftest.Root + `, the registry key HKLM\` + selftest.RegistryKey + `, a firewall
rule, a route to 192.0.2.0/24, an HNS network. All of them are removed at the end, and at the beginning what an interrupted run has left.
Three things of Windows are changed for a moment and given back: the name that the computer gets with its next boot, the pending state of the
feature ` + selftest.Feature + `, and the registry value PreshutdownOrder. It boots nothing and fills no drive.

A line is printed for each promise; with -o json, the result as one JSON value, and the lines on stderr. The result has no name and no
address of the machine.` + cli.ExitHelp(
			"0  every promise that was tested is kept", "1  a promise is not kept", "2  invalid usage, or this machine is a node",
			"4  this machine cannot be prepared, or something is left on it", "130  interrupted",
		),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.selftest(cmd.Context(), format, onNode) },
	}
	cmd.Flags().BoolVar(&onNode, "on-node", false, "test although this machine is a node of a cluster")
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

func (p Program) selftest(ctx context.Context, format cli.Format, onNode bool) error { //nolint:revive // the value of a flag
	if why, err := p.nodeReason(ctx); err != nil {
		return err
	} else if why != "" && !onNode {
		return cli.UsageError("this machine is a node: %s; run it on another machine, or with --on-node", why)
	}
	machine, err := p.Host.Machine()
	if err != nil {
		return cli.UsageError("%w", err)
	}
	defer cli.Orderly(ctx)()
	lines := p.Stdout
	if format == cli.JSON {
		lines = p.Stderr
	}
	r, err := selftest.Run(ctx, machine, selftest.Options{
		Program: p.Version, Now: time.Now,
		Tell: func(o result.Outcome) {
			for _, line := range o.Lines() {
				cli.Printf(lines, "%s\n", line)
			}
		},
	})
	if format == cli.JSON {
		if failed := p.print(r); failed != nil {
			return failed
		}
	}
	switch {
	case err != nil:
		return &cli.ExitError{Status: cli.ExitPartial, Err: err}
	case len(r.Left) > 0:
		return &cli.ExitError{Status: cli.ExitPartial, Err: fmt.Errorf("removing what the test made: %s; fix: run it again", r.Left)}
	}
	cli.Printf(lines, "%s\n", r.Summary())
	if r.Failed > 0 {
		return cli.Exit(cli.ExitDiffers)
	}
	return nil
}

// nodeReason returns why this machine is a node, "" if it is none.
func (p Program) nodeReason(ctx context.Context) (string, error) {
	host, err := p.Host.Open()
	if err != nil {
		return "", cli.UsageError("%w", err)
	}
	states, err := host.Services(ctx, []string{layout.Kubelet, layout.Agent})
	if err != nil {
		return "", err
	}
	for _, s := range states {
		if s.Status != plan.ServiceAbsent {
			return "it has the service " + s.Name, nil
		}
	}
	return "", nil
}
