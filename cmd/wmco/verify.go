package main

import (
	"context"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/internal/cli"
)

func verifyCommand(a app) *cobra.Command {
	var f remoteFlags
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "verify --from PATH|-|cluster[:CONTEXT] --host [USER@]ADDR[:PORT] ... [--node NAME | --instance ADDRESS]",
		Short: "Check over SSH that Windows hosts have their desired state",
		Long: `Render the bundles of the named hosts and compare: every file is read, and every service is checked. Only --install changes
something on hosts.

With --from cluster and without --payload, a node that the operator manages is compared with the executables of its published bundle.
A note lists what wmco apply would refuse.` +
			cli.ExitHelp(
				"0  every host has its desired state and is healthy", "1  a host differs, or a service is unhealthy",
				"2  invalid usage, or inputs with errors",
				"3  the cluster, a host or the registry of --payload cannot be reached, refuses the login, or has no node agent",
				"4  the agent's records on a host cannot be read, or a file is locked: run the command again", "130  interrupted",
			) +
			"\nOver several hosts the most severe status wins: 2, 4, 3, 1, 0.",
		Example: `  wmco verify --from cluster --payload bin/payload --host 10.0.0.5 --host 10.0.0.6`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.compare(cmd.Context(), a, format, (*remote.Agent).Verify)
		},
	}
	f.inputFlags.addFlags(cmd)
	f.hostFlags.addFlags(cmd)
	f.addInstall(cmd)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsObjects(), needsHosts(), needsProgram()}, Alone: [][]string{oneChoice()}})
	return cmd
}

// ask is one question about a manifest.
type ask func(*remote.Agent, context.Context, remote.Request) (protocol.Observation, error)

// comparedJSON is one host in the answer of `wmco verify -o json` and `wmco diff --host -o json`.
type comparedJSON struct {
	Host string `json:"host"`
	Node string `json:"node,omitempty"`
	// Observation is absent where there is an Error.
	Observation *protocol.Observation `json:"observation,omitempty"`
	Error       string                `json:"error,omitempty"`
	Fix         string                `json:"fix,omitempty"`
	// Findings are those of the host's bundle, including the cluster's.
	Findings bundle.Findings `json:"findings"`
}

// compare asks all hosts and prints what differs.
func (f *remoteFlags) compare(ctx context.Context, a app, format cli.Format, ask ask) error {
	o, err := f.openHosts(ctx, a)
	if err != nil {
		return unchangedError(ctx, err)
	}
	defer cli.Orderly(ctx)()
	seen := map[remote.Target]protocol.Observation{}
	var mu sync.Mutex
	o.forEachHost(ctx, func(ctx context.Context, m *remote.Agent, h *host) error {
		observation, err := ask(m, ctx, h.request)
		mu.Lock()
		defer mu.Unlock()
		seen[h.target] = observation
		return err
	})
	if err := o.client.Close(); err != nil {
		return err
	}
	return unchangedError(ctx, o.printCompared(a, format, seen))
}

// printCompared prints the answer, and returns the status.
func (o *hosts) printCompared(a app, format cli.Format, seen map[remote.Target]protocol.Observation) error {
	status := cli.ExitDone
	for _, h := range o.all {
		status = moreSevere(status, comparedStatus(h.err, seen[h.target]))
	}
	printFindings(a.stderr, palette{}, o.allFindings())
	if format == cli.JSON {
		if err := cli.WriteJSON(a.stdout, o.comparedAnswer(seen)); err != nil {
			return err
		}
		return cli.Exit(status)
	}
	for _, h := range o.all {
		if h.err == nil {
			printObservation(a, palette{a.color}, h, seen[h.target])
		}
	}
	for _, h := range o.all {
		printFailure(a, format, h)
	}
	return cli.Exit(status)
}

func (o *hosts) comparedAnswer(seen map[remote.Target]protocol.Observation) []comparedJSON {
	answer := []comparedJSON{}
	for _, h := range o.all {
		c := comparedJSON{
			Host: h.target.String(), Node: h.node.ID(),
			Findings: findingsAnswer(slices.Concat(o.inputs.Findings, h.findings).Sorted()),
		}
		if h.err != nil {
			c.Error, c.Fix = h.err.Error(), remote.SuggestFix(h.err)
		} else {
			observation := seen[h.target]
			c.Observation = &observation
		}
		answer = append(answer, c)
	}
	return answer
}

func comparedStatus(err error, o protocol.Observation) int {
	switch {
	case err != nil:
		return hostStatus(err, cli.ExitUnreachable)
	case o.InSync && len(o.Unhealthy) == 0:
		return cli.ExitDone
	}
	return cli.ExitDiffers
}

// printObservation writes how one host differs, and which objects caused it.
func printObservation(a app, p palette, h *host, o protocol.Observation) {
	head := "has its desired state"
	if !o.InSync {
		head = planText(len(o.Actions), o.Impact)
	}
	cli.Printf(a.stdout, "%s  %s  %s\n", p.bold(h.target.String()), h.node.ID(), head)
	for _, x := range o.Actions {
		causes := joinBy(h.rendered.Bundle.Provenance[x.Entry], bundle.Ref.String, ", ")
		cli.Printf(a.stdout, "  %-8s %s  %s, impact %s  %s\n", x.Verb, x.Entry, x.Reason, x.Impact, p.dim(causes))
	}
	if o.Interrupted != "" {
		cli.Printf(a.stdout, "  a run for bundle %s was interrupted or is in progress: apply again\n", o.Interrupted.Short())
	}
	for _, u := range o.Unhealthy {
		cli.Printf(a.stdout, "  unhealthy %s: %s\n", u.Service, u.Reason)
	}
	for _, id := range o.RebootPending {
		cli.Printf(a.stdout, "  waits for a reboot: %s\n", id)
	}
	for _, path := range o.Foreign {
		cli.Printf(a.stdout, "  unmanaged, left alone: %s\n", path)
	}
	for _, note := range o.Notes {
		cli.Printf(a.stdout, "  note: %s\n", note)
	}
}
