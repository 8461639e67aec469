package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle"
)

func verifyCommand(a app) *cobra.Command {
	var f machineFlags
	var format format
	cmd := &cobra.Command{
		Use:   "verify --from PATH|-|cluster[:CONTEXT] --host [USER@]ADDR[:PORT] ... [--node NAME | --instance ADDRESS]",
		Short: "Check that Windows machines are what they should be, over SSH",
		Long: `Render the bundles of the named machines and compare: every file on them is read, every service is asked whether it is
healthy. Nothing on them changes, but for the node program, which is put onto a machine that lacks it.` +
			exitHelp("0  every machine is as it should be, and healthy", "1  a machine is not", "2  usage, or inputs with findings of severity error", "3  the cluster or a machine cannot be reached, or lets us not in", "4  records on a machine cannot be read, or a file is locked: run it again", "130  interrupted") +
			"\nOver several machines the gravest counts: 2, 4, 3, 1, 0.",
		Example: `  wmco verify --from cluster --payload bin/payload --host 10.0.0.5 --host 10.0.0.6`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.compare(cmd.Context(), a, format, (*remote.Agent).Verify)
		},
	}
	f.inputFlags.add(cmd)
	f.hostFlags.add(cmd)
	addFormat(cmd, &format)
	return cmd
}

// ask is one question about a manifest.
type ask func(*remote.Agent, context.Context, remote.Request) (applier.Observation, error)

// comparedJSON is one machine in the answer of `wmco verify -o json` and `wmco diff --host -o json`.
type comparedJSON struct {
	Host string `json:"host"`
	Node string `json:"node,omitempty"`
	// Observation is absent where there is an Error.
	Observation *applier.Observation `json:"observation,omitempty"`
	Error       string               `json:"error,omitempty"`
	Fix         string               `json:"fix,omitempty"`
	// Findings are those of the machine's bundle, the cluster's included.
	Findings bundle.Findings `json:"findings"`
}

// compare asks all machines and prints what differs.
func (f *machineFlags) compare(ctx context.Context, a app, format format, ask ask) error {
	o, err := f.fleet(ctx, a)
	if err != nil {
		return untouched(ctx, err)
	}
	seen := map[remote.Target]applier.Observation{}
	var mu sync.Mutex
	o.each(ctx, func(ctx context.Context, m *remote.Agent, member *member) error {
		observation, err := ask(m, ctx, member.request)
		mu.Lock()
		defer mu.Unlock()
		seen[member.target] = observation
		return err
	})
	if err := o.client.Close(); err != nil {
		return err
	}
	return untouched(ctx, o.tellCompared(a, format, seen))
}

func (o *fleet) tellCompared(a app, format format, seen map[remote.Target]applier.Observation) error {
	status := exitDone
	answer := []comparedJSON{}
	for _, m := range o.members {
		c := comparedJSON{Host: m.target.String(), Node: m.node.ID(), Findings: append(bundle.Findings{}, slices.Concat(o.inputs.findings, m.own).Sorted()...)}
		if m.err != nil {
			c.Error, c.Fix = m.err.Error(), remote.Fix(m.err)
			status = graver(status, hostStatus(m.err, exitUnreachable))
		} else {
			observation := seen[m.target]
			c.Observation = &observation
			status = graver(status, comparedStatus(observation))
		}
		answer = append(answer, c)
	}
	printFindings(a.stderr, palette{}, o.findings())
	if format == formatJSON {
		if err := writeJSON(a.stdout, answer); err != nil {
			return err
		}
	} else {
		o.printCompared(a, seen)
		for _, m := range o.members {
			printFailure(a, format, m)
		}
	}
	if status != exitDone {
		return &exitError{status: status}
	}
	return nil
}

func comparedStatus(o applier.Observation) int {
	if o.InSync && len(o.Unhealthy) == 0 {
		return exitDone
	}
	return exitDiffers
}

func (o *fleet) printCompared(a app, seen map[remote.Target]applier.Observation) {
	p := palette{a.color}
	for _, m := range o.members {
		if m.err == nil {
			printObservation(a, p, m, seen[m.target])
		}
	}
}

// printObservation writes how one machine differs, and which objects caused it.
func printObservation(a app, p palette, m *member, o applier.Observation) {
	head := "as it should be"
	if !o.InSync {
		head = fmt.Sprintf("%d actions, impact %s", len(o.Actions), o.Impact)
	}
	fmt.Fprintf(a.stdout, "%s  %s  %s\n", p.bold(m.target.String()), m.node.ID(), head)
	for _, x := range o.Actions {
		causes := joinBy(m.bundle.Provenance[x.Entry], bundle.Ref.String, ", ")
		fmt.Fprintf(a.stdout, "  %-8s %s  %s, impact %s  %s\n", x.Verb, x.Entry, x.Reason, x.Impact, p.dim(causes))
	}
	if o.Interrupted != "" {
		fmt.Fprintf(a.stdout, "  an application of bundle %s was cut or is under way: apply again\n", o.Interrupted.Short())
	}
	for _, u := range o.Unhealthy {
		fmt.Fprintf(a.stdout, "  unhealthy %s: %s\n", u.Service, u.Reason)
	}
	for _, id := range o.RebootPending {
		fmt.Fprintf(a.stdout, "  waits for a reboot: %s\n", id)
	}
	for _, path := range o.Foreign {
		fmt.Fprintf(a.stdout, "  not ours, left alone: %s\n", path)
	}
	for _, note := range o.Notes {
		fmt.Fprintf(a.stdout, "  note: %s\n", note)
	}
}
