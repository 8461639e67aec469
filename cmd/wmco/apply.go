package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/heartbeat"
	"wmco/internal/cli"
)

// applyFlags are those of `wmco apply`.
type applyFlags struct {
	remoteFlags
	format  cli.Format
	options remote.ApplyOptions
	impact  string
	reset   string
	// anyVersion allows a cluster version that this release does not support.
	anyVersion bool
}

// defaultConfirm is how long a host waits to be reached by a new connection before it rolls back.
const defaultConfirm = 2 * time.Minute

func applyCommand(a app) *cobra.Command {
	f := applyFlags{remoteFlags: remoteFlags{install: true}}
	cmd := &cobra.Command{
		Use:   "apply --from PATH|-|cluster[:CONTEXT] --host [USER@]ADDR[:PORT] ... [--node NAME | --instance ADDRESS]",
		Short: "Bring Windows hosts to their desired state over SSH",
		Long: `Render the bundles of the named hosts and apply the differences. A host is rolled back if a service does not become healthy, or if
wmco cannot reconnect within --confirm-within after a change. The next run resumes an interrupted one. Hosts are independent of each
other. wmco finds the node or instance of each --host by address or name, or by --node or --instance for a single one. The node
agent is copied to hosts that lack it.

Without --payload, the executables must already be on the hosts. With --from cluster, a node that the operator manages keeps those
of its published bundle. A host with the operator's signing keys rejects a bundle without them, such as one rendered from files
only, unless you pass --remove-signing-keys. Inputs without the values of secrets, such as a must-gather, are refused, also with
--dry-run.` +
			cli.ExitHelp(
				"0  every host has its desired state",
				"2  invalid usage, inputs with errors, or a plan that a host refuses, for example above --max-impact; that host was not changed",
				"3  the cluster, a host or the registry of --payload cannot be reached, or refuses the login",
				"4  a host is only partly changed, needs a reboot, or its result is unknown: run the command again (after the reboot)",
				"5  a host was rolled back", "130  interrupted",
			) +
			"\nOver several hosts the most severe status wins: 2, 4, 5, 3, 0.",
		Example: `  wmco apply --from cluster --payload bin/payload --host 10.0.0.5 --identity key
  wmco apply --from cluster --host capi@win-1:2222 --host capi@win-2 --node-program wmco-node.exe --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.inputFlags.addFlags(cmd)
	f.hostFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(
		&f.options.DryRun, "dry-run", false,
		"print the plan and change nothing, except that the node agent is copied to hosts that lack it",
	)
	flags.StringVar(&f.impact, "max-impact", "", "refuse a plan with a higher impact: none, restart, drain or reboot")
	flags.BoolVar(&f.options.ChangeNode, "change-node", false, "apply even if the host is another node than the bundle is for")
	flags.StringVar(
		&f.reset, "reset", "",
		"the Node `NODE` was deleted: stop everything on its host, and apply the bundle for joining again",
	)
	flags.BoolVar(
		&f.options.RemoveSigningKeys, "remove-signing-keys", false,
		"remove the operator's signing keys from the hosts. Dangerous: their agents then accept unsigned bundles",
	)
	flags.BoolVar(&f.options.Reboot, "reboot", false, "reboot hosts where a change needs it")
	flags.DurationVar(
		&f.options.ConfirmWithin, "confirm-within", defaultConfirm,
		"roll back unless a new connection reaches the host within this time; 0 needs no confirmation",
	)
	flags.DurationVar(&f.options.Wait, "wait", time.Minute, "how long to wait for another run on the same host")
	flags.BoolVar(
		&f.anyVersion, "allow-unsupported-version", false,
		"apply to a cluster whose version this release does not support",
	)
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsObjects(), needsHosts(), needsProgram()}, Alone: [][]string{oneChoice()}})
	return cmd
}

// checkOptions completes the options, and refuses those that are not valid.
func (f *applyFlags) checkOptions() error {
	f.options.MaxImpact = bundle.Impact(f.impact)
	if f.impact != "" && f.options.MaxImpact.Rank() > bundle.ImpactReboot.Rank() {
		return cli.UsageError("--max-impact %s: none, restart, drain or reboot", f.impact)
	}
	if f.options.ConfirmWithin < 0 {
		return cli.UsageError("--confirm-within %s: must not be negative; 0 needs no confirmation", f.options.ConfirmWithin)
	}
	return nil
}

func (f *applyFlags) run(ctx context.Context, a app) error {
	if err := f.checkOptions(); err != nil {
		return err
	}
	o, err := f.openHosts(ctx, a)
	if err != nil {
		return unchangedError(ctx, err)
	}
	if err := f.checkInputs(a, o.inputs.Findings); err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	progress := newProgress(a, f.format, o.all)
	results := f.applyToHosts(ctx, a, o, progress)
	progress.end()
	if err := o.client.Close(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		middle := 0
		if !f.options.DryRun {
			middle = results.explainInterrupted(o.all, context.Cause(ctx))
		}
		switch {
		case middle > 0:
			cli.Printf(
				a.stderr, "interrupted; in the middle of a change, which goes on without this command: %d of %s\n",
				middle, bundle.Count(len(o.all), "host"),
			)
		case !results.hasEnded():
			return unchangedError(ctx, ctx.Err())
		}
	}
	err = f.printResults(a, o, results)
	if f.options.DryRun {
		return unchangedError(ctx, err)
	}
	return err
}

// checkInputs refuses inputs whose bundles may be shown but not applied. No host is reached yet.
func (f *applyFlags) checkInputs(a app, findings bundle.Findings) error {
	var allowed []string
	if f.anyVersion {
		allowed = append(allowed, reason.ClusterVersionUnsupported)
	}
	only := desired.PreviewOnly(findings, allowed...)
	if len(only) == 0 {
		return nil
	}
	printFindings(a.stderr, palette{}, only)
	if len(desired.PreviewOnly(only, reason.ClusterVersionUnsupported)) == 0 {
		return cli.UsageError("no host is changed: this release does not support the cluster's version; " +
			"--allow-unsupported-version applies nevertheless")
	}
	return cli.UsageError("no host is changed: stand-ins would replace secrets; these inputs can be shown, not applied")
}

// applyToHosts works on all hosts.
func (f *applyFlags) applyToHosts(ctx context.Context, a app, o *hosts, progress *progress) *results {
	all := newResults()
	defer o.confirms.Close() //nolint:errcheck // it keeps no connections
	o.forEachHost(ctx, func(ctx context.Context, m *remote.Agent, h *host) error {
		var impact bundle.Impact
		var confirming sync.WaitGroup
		var clock sync.Once
		defer confirming.Wait()
		applying, ended := context.WithCancel(ctx)
		defer ended()
		request := h.request
		request.Reset = f.reset
		request.Source = progress.beginHost(h.target, h.rendered.Bundle.Services(), request.Source)
		note := all.begin(h.target, newUnfinished(h.rendered.Bundle.Services(), h.node.Name != ""))
		event, err := m.Apply(ctx, request, f.options, func(e protocol.Event) {
			note(e)
			progress.event(h.target, e)
			clock.Do(func() { noteClock(progress, h.target, e.Time, a.now()) })
			impact = cmp.Or(e.Impact, impact)
			if e.Event == protocol.EventConfirm {
				confirming.Go(func() {
					o.confirms.AgentFor(h.target).ConfirmReachable(applying, h.request.Manifest.Digest, func(err error) {
						progress.note(h.target, confirmNote(err))
					})
				})
			}
		})
		event.Impact = impact
		all.put(h.target, event)
		progress.done(h.target, applyStatus(event.Result, err))
		return contentError(err)
	})
	for _, h := range o.all {
		if h.err != nil {
			progress.done(h.target, applyStatus("", h.err))
		}
	}
	return all
}

// noteClock notes that the clock of a host differs. It is a hint: nothing is decided by it.
func noteClock(progress *progress, t remote.Target, on, here time.Time) {
	if by := on.Sub(here); !on.IsZero() && by.Abs() > heartbeat.Tolerance {
		progress.note(t, "ClockSkew: the clock is "+heartbeat.SkewText(by)+"; fix: "+heartbeat.Fix)
	}
}

func confirmNote(err error) string {
	text := "confirming, retried every second: " + err.Error()
	if fix := remote.SuggestFix(err); fix != "" {
		text += "; fix: " + fix
	}
	return text
}

// contentError explains a content that is not available: executables come from a payload.
func contentError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError("%w: it is missing on the host and not in the inputs; give the executables with --payload", err)
	}
	return err
}

// printResults prints the results, and returns the status.
func (f *applyFlags) printResults(a app, o *hosts, results *results) error {
	status := cli.ExitDone
	for _, h := range o.all {
		status = moreSevere(status, applyStatus(results.events[h.target].Result, h.err))
	}
	printFindings(a.stderr, palette{}, o.allFindings())
	if f.format == cli.Text {
		if err := f.printTable(a, o, results); err != nil {
			return err
		}
	}
	for _, h := range o.all {
		switch {
		case h.err != nil:
			printFailure(a, f.format, h)
		case f.format == cli.Text:
			f.printEnd(a, h.target, results.events[h.target])
		}
	}
	return cli.Exit(status)
}

func (f *applyFlags) printTable(a app, o *hosts, results *results) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	cli.Printf(w, "HOST\tNODE\tRESULT\tIMPACT\tWRITTEN\tRESTARTED\n")
	for _, h := range o.all {
		e := results.events[h.target]
		cli.Printf(
			w, "%s\t%s\t%s\t%s\t%d\t%d\n", h.target, h.node.ID(), f.resultText(e, h.err),
			cmp.Or(string(e.Impact), "-"), e.Written, e.Restarted,
		)
	}
	return w.Flush()
}

func (f *applyFlags) resultText(e protocol.Event, err error) string {
	switch {
	case err != nil:
		return "no result"
	case e.Result == protocol.ResultReboot && f.rebootsHosts():
		return "rebooting: apply again when it is back"
	case e.Result == protocol.ResultReboot:
		return "waits for a reboot: reboot it and apply again"
	case len(e.RebootPending) > 0 && f.rebootsHosts() && (e.Result == protocol.ResultSame || e.Result == protocol.ResultApplied):
		return string(e.Result) + ", rebooting"
	case len(e.RebootPending) > 0:
		return string(e.Result) + ", a reboot is pending"
	}
	return string(e.Result)
}

// rebootsHosts reports whether hosts are rebooted where something waits for it.
func (f *applyFlags) rebootsHosts() bool {
	return f.options.Reboot && bundle.ImpactReboot.CheckLimit(f.options.MaxImpact) == nil
}

// printEnd prints why a host does not have its desired state, and what to do.
func (f *applyFlags) printEnd(a app, t remote.Target, e protocol.Event) {
	switch e.Result {
	case protocol.ResultRolledBack, protocol.ResultPartial, protocol.ResultRefused:
		cli.Printf(a.stderr, "%s: %s\n", t, cmp.Or(e.Message, string(e.Result)))
		for _, line := range e.Log.Lines {
			cli.Printf(a.stderr, "  log of %s: %s\n", e.Log.Service, line)
		}
		if fix := f.fixFor(e); fix != "" {
			cli.Printf(a.stderr, "  fix: %s\n", fix)
		}
	case protocol.ResultSame, protocol.ResultApplied, protocol.ResultPlanned, protocol.ResultReboot, protocol.ResultHandedOver:
	}
}

// fixFor returns what to do about a result; empty where its message has that.
func (f *applyFlags) fixFor(e protocol.Event) string {
	switch {
	case e.DiskFull:
		return "free space on drive C: of the host, for example from images that no container uses, and apply again"
	case e.Result == protocol.ResultRolledBack:
		return `read the log of the service under C:\var\log on the host, fix the inputs and apply again`
	case e.Result == protocol.ResultPartial:
		return "apply again; if another run is in progress on the host, wait for its end or give a longer --wait"
	case e.Result == protocol.ResultRefused && e.Impact != "" && e.Impact.CheckLimit(f.options.MaxImpact) != nil:
		return "allow it with --max-impact " + string(e.Impact)
	case e.Result == protocol.ResultRefused && len(e.Missing) > 0:
		return "apply again, with --payload if these are executables"
	}
	return ""
}

// applyStatus returns the status of one host.
func applyStatus(r protocol.Result, err error) int {
	if err != nil {
		return hostStatus(err, cli.ExitPartial)
	}
	switch r {
	case protocol.ResultSame, protocol.ResultApplied, protocol.ResultPlanned:
		return cli.ExitDone
	case protocol.ResultRolledBack:
		return cli.ExitRolledBack
	case protocol.ResultRefused:
		return cli.ExitUsage
	case protocol.ResultPartial, protocol.ResultReboot, protocol.ResultHandedOver:
		return cli.ExitPartial
	}
	return cli.ExitPartial
}
