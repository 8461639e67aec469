package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/bundle"
)

// applyFlags are those of `wmco apply`.
type applyFlags struct {
	machineFlags
	format  format
	options remote.ApplyOptions
	impact  string
}

// defaultConfirm is how long a machine waits to be reached anew before it puts everything back.
const defaultConfirm = 2 * time.Minute

func applyCommand(a app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply --from PATH|-|cluster[:CONTEXT] --host [USER@]ADDR[:PORT] ... [--node NAME | --instance ADDRESS]",
		Short: "Make Windows machines what they should be, over SSH",
		Long: `Render the bundles of the named machines and apply them: what differs is written, nothing else, and what does not come up
is put back. A machine gets the bundle of the node or instance that has its address or name; --node or --instance choose
one for a single --host. The node program is put onto a machine that lacks it.

Machines are worked on at once and do not wait for each other. What was cut is taken up by the next run. A machine that
cannot be reached over a new connection after the change, tried every second, puts everything back (--confirm-within).

Without --payload, executables are expected to be on the machines.` +
			exitHelp("0  every machine is as it should be", "2  usage, or inputs with findings of severity error, or a plan that is refused: nothing was done there", "3  the cluster or a machine cannot be reached, or lets us not in", "4  a machine was changed in part, or its end is not known: run it again", "5  a machine did not come up and was put back", "130  interrupted") +
			"\nOver several machines the gravest counts: 2, 4, 5, 3, 0.",
		Example: `  wmco apply --from cluster --payload bin/payload --host 10.0.0.5 --identity key
  wmco apply --from must-gather --host capi@win-1:2222 --host capi@win-2 --node-program wmco-node.exe --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.inputFlags.add(cmd)
	f.hostFlags.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.options.DryRun, "dry-run", false, "say what would be done, and stop before the first write")
	flags.StringVar(&f.impact, "max-impact", "", "refuse changes that cost more: none, restart, drain or reboot")
	flags.BoolVar(&f.options.Reboot, "reboot", false, "reboot machines where a change waits for it")
	flags.DurationVar(&f.options.ConfirmWithin, "confirm-within", defaultConfirm, "put everything back unless the machine can be reached anew within this time; 0 trusts it")
	flags.DurationVar(&f.options.Wait, "wait", time.Minute, "how long to wait for another one who changes the machine")
	addFormat(cmd, &f.format)
	return cmd
}

// check takes the options from the flags, and refuses those that mean nothing.
func (f *applyFlags) check() error {
	f.options.MaxImpact = bundle.Impact(f.impact)
	if f.impact != "" && f.options.MaxImpact.Rank() > bundle.ImpactReboot.Rank() {
		return usageError("--max-impact %s: none, restart, drain or reboot", f.impact)
	}
	if f.options.ConfirmWithin < 0 {
		return usageError("--confirm-within %s: a time from now on, or 0 to trust the machine", f.options.ConfirmWithin)
	}
	return nil
}

func (f *applyFlags) run(ctx context.Context, a app) error {
	if err := f.check(); err != nil {
		return err
	}
	o, err := f.fleet(ctx, a)
	if err != nil {
		return untouched(ctx, err)
	}
	show := newShow(a, f.format, o.members)
	results := f.apply(ctx, o, show)
	show.end()
	if err := o.client.Close(); err != nil {
		return err
	}
	if ctx.Err() != nil && len(results.events) == 0 {
		return untouched(ctx, ctx.Err())
	}
	err = f.tell(a, o, results)
	if f.options.DryRun {
		return untouched(ctx, err)
	}
	return err
}

// apply works on all machines. The results are by target.
func (f *applyFlags) apply(ctx context.Context, o *fleet, show *show) *results {
	all := &results{events: map[remote.Target]applier.Event{}}
	// What confirms must come through a door that was opened after the change.
	anew := o.dialer
	anew.Limits.Kept = 0
	confirms := remote.NewClient(ssh.NewTransport(anew), o.program)
	o.each(ctx, func(ctx context.Context, m *remote.Agent, member *member) error {
		var impact bundle.Impact
		var confirming sync.WaitGroup
		defer confirming.Wait()
		applying, ended := context.WithCancel(ctx)
		defer ended()
		event, err := m.Apply(ctx, member.request, f.options, func(e applier.Event) {
			show.event(member.target, e)
			impact = bundle.Impact(firstNonEmpty(string(e.Impact), string(impact)))
			if e.Event == applier.EventConfirm {
				confirming.Go(func() { confirm(applying, confirms.Agent(member.target), member, show) })
			}
		})
		event.Impact = impact
		all.put(member.target, event)
		show.done(member.target, applyStatus(event.Result, err))
		return contentError(err)
	})
	for _, m := range o.members {
		if m.err != nil {
			show.done(m.target, applyStatus("", m.err))
		}
	}
	return all
}

// contentError tells a content that nobody has: executables come from a payload.
func contentError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitUsage, fmt.Errorf("%w: the machine lacks it and it is not in the inputs; give the executables with --payload", err)}
	}
	return err
}

// tell prints how it ended, and returns the status.
func (f *applyFlags) tell(a app, o *fleet, results *results) error {
	status := exitDone
	for _, m := range o.members {
		status = graver(status, applyStatus(results.events[m.target].Result, m.err))
	}
	printFindings(a.stderr, palette{}, o.findings())
	if f.format == formatText {
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "HOST\tNODE\tRESULT\tIMPACT\tWRITTEN\tRESTARTED")
		for _, m := range o.members {
			e := results.events[m.target]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\n", m.target, m.node.ID(), f.resultText(e, m.err), firstNonEmpty(string(e.Impact), "-"), e.Written, e.Restarted)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, m := range o.members {
		switch {
		case m.err != nil:
			printFailure(a, f.format, m)
		case f.format == formatText:
			f.printEnd(a, m.target, results.events[m.target])
		}
	}
	if status != exitDone {
		return &exitError{status: status}
	}
	return nil
}

func (f *applyFlags) resultText(e applier.Event, err error) string {
	switch {
	case err != nil:
		return "no result"
	case e.Result == applier.ResultReboot && f.reboots():
		return "rebooting: apply again when it is back"
	case e.Result == applier.ResultReboot:
		return "waits for a reboot: reboot it and apply again"
	case len(e.RebootPending) > 0 && f.reboots() && (e.Result == applier.ResultSame || e.Result == applier.ResultApplied):
		return string(e.Result) + ", rebooting"
	case len(e.RebootPending) > 0:
		return string(e.Result) + ", a reboot is pending"
	}
	return string(e.Result)
}

// reboots tells whether machines are rebooted where something waits for it.
func (f *applyFlags) reboots() bool {
	return f.options.Reboot && applier.Allowed(bundle.ImpactReboot, f.options.MaxImpact) == nil
}

// printEnd tells why a machine is not as it should be, and what to do.
func (f *applyFlags) printEnd(a app, t remote.Target, e applier.Event) {
	switch e.Result {
	case applier.ResultRolledBack, applier.ResultPartial, applier.ResultRefused:
		fmt.Fprintf(a.stderr, "%s: %s\n", t, firstNonEmpty(e.Message, string(e.Result)))
		if fix := f.fix(e); fix != "" {
			fmt.Fprintf(a.stderr, "  fix: %s\n", fix)
		}
	case applier.ResultSame, applier.ResultApplied, applier.ResultPlanned, applier.ResultReboot:
	}
}

// fix is what to do about an application that ended so; empty where its message says that.
func (f *applyFlags) fix(e applier.Event) string {
	switch {
	case e.Result == applier.ResultRolledBack:
		return `look into the service's log under C:\var\log on the machine, mend the inputs, apply again`
	case e.Result == applier.ResultPartial:
		return "apply again; where another run is at work on the machine, wait for its end or give a longer --wait"
	case e.Result == applier.ResultRefused && e.Impact != "" && applier.Allowed(e.Impact, f.options.MaxImpact) != nil:
		return "apply when the machine may be disturbed so much, with --max-impact " + string(e.Impact)
	case e.Result == applier.ResultRefused && len(e.Missing) > 0:
		return "apply again, with --payload if these are executables"
	}
	return ""
}

// applyStatus is the status of one machine.
func applyStatus(r applier.Result, err error) int {
	if err != nil {
		return hostStatus(err, exitPartial)
	}
	switch r {
	case applier.ResultSame, applier.ResultApplied, applier.ResultPlanned:
		return exitDone
	case applier.ResultRolledBack:
		return exitRolledBack
	case applier.ResultRefused:
		return exitUsage
	case applier.ResultPartial, applier.ResultReboot:
		return exitPartial
	}
	return exitPartial
}
