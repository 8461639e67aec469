package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/cli"
)

type runFlags struct {
	service    bool
	reportOnly bool
	kubeconfig string
	logDir     string
	interval   time.Duration
	full       time.Duration
}

func runCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this host in the state of the bundle that was applied last",
		Long: `Compare the host with that bundle periodically, repair what differs from the contents that are kept on this host, resume or
roll back an interrupted run, and keep logs within their limits.` +
			cli.ExitHelp("0    asked to stop", "2    usage", "4    its own service was reconfigured: a restart runs it with the new configuration", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.service {
				return a.keep(cmd.Context(), f)
			}
			return asService(cmd.Context(), func(ctx context.Context) error { return a.keep(ctx, f) })
		},
	}
	flags := cmd.Flags()
	// A flag and not svc.IsWindowsService, which inspects the session and the parent: that is not reliable everywhere.
	flags.BoolVar(&f.service, "service", false, "run as the Windows service "+bundle.AgentService)
	flags.BoolVar(&f.reportOnly, "report-only", false, "report what differs and repair nothing")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster that publishes bundles")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for logs (default stderr)")
	flags.DurationVar(&f.interval, "interval", 5*time.Minute, "time between two comparisons")
	flags.DurationVar(&f.full, "full-interval", 6*time.Hour, "time between two comparisons that read every file")
	return cmd
}

// errRestart ends the program so that the service control manager restarts it.
var errRestart = &cli.ExitError{Status: cli.ExitPartial, Err: errors.New("the service of this program was reconfigured")}

// keep repairs until the context ends.
func (a *app) keep(ctx context.Context, f runFlags) error {
	log, closeLogs, err := a.openLogs(f.logDir)
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	defer closeLogs()
	e, err := a.engine("run")
	if err != nil {
		return err
	}
	if f.service {
		e.Self = bundle.AgentService
	}
	log.Info("started", "version", a.version, "interval", f.interval, "reportOnly", f.reportOnly)
	k := keeper{engine: e, log: log, flags: f}
	for due := time.Duration(0); ; {
		if due <= 0 {
			if err := k.turn(ctx); err != nil {
				return err
			}
			due = f.interval
		}
		k.housekeep(ctx)
		pause := min(due, housekeepInterval)
		select {
		case <-ctx.Done():
			log.Info("stopped")
			return nil
		case <-a.clock.After(pause):
			due -= pause
		}
	}
}

// housekeepInterval is the longest time between two checks of logs: a log exceeds its size by what is written in between.
const housekeepInterval = 30 * time.Second

// keeper is what turns share.
type keeper struct {
	engine *applier.Engine
	log    *slog.Logger
	flags  runFlags
	// read is when every file was last read.
	read time.Time
	// differs is what the last turn reported and did not repair, now what this turn has found.
	differs, now []plan.Action
}

// turn compares and repairs once. It returns only errors that end the program.
func (k *keeper) turn(ctx context.Context) error {
	now := k.engine.Clock.Now()
	o := applier.Options{Full: now.Sub(k.read) >= k.flags.full, DryRun: k.flags.reportOnly}
	k.engine.Emit = k.event
	k.now = nil
	outcome, err := k.engine.Repair(ctx, o)
	k.report()
	var locked *applier.LockedError
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was asked to stop
	case errors.As(err, &locked):
		k.log.Info("another run is changing this host", "owner", locked.Owner)
	case err != nil:
		k.log.Error("repairing", "error", err)
	default:
		if o.Full {
			k.read = now
		}
	}
	if outcome.RestartSelf {
		k.log.Info("restarting: the service was reconfigured")
		return errRestart
	}
	return nil
}

// housekeep limits logs and other files that grow.
func (k *keeper) housekeep(ctx context.Context) {
	if err := k.engine.Housekeep(ctx); err != nil && ctx.Err() == nil {
		k.log.Warn("limiting logs", "error", err)
	}
}

// report logs what differs and is not repaired, when that has changed.
func (k *keeper) report() {
	if slices.Equal(k.now, k.differs) {
		return
	}
	k.differs = k.now
	if len(k.now) == 0 {
		k.log.Info("nothing differs anymore")
	}
	for _, a := range k.now {
		k.log.Warn("differs", "verb", a.Verb, "entry", a.Entry, "reason", a.Reason)
	}
}

// event logs what happened. A turn in which nothing differs is silent.
func (k *keeper) event(e applier.Event) {
	switch e.Event {
	case applier.EventAction:
		if k.flags.reportOnly {
			k.now = append(k.now, *e.Action)
			return
		}
		k.log.Info("action", "verb", e.Action.Verb, "entry", e.Action.Entry, "reason", e.Action.Reason)
	case applier.EventRollback:
		k.log.Error("rolling back", "reason", e.Message)
	case applier.EventNote:
		k.log.Warn(e.Message)
	case applier.EventResult:
		if e.Result == applier.ResultApplied || e.Result == applier.ResultReboot || e.Result == applier.ResultRolledBack {
			k.log.Info("result", "result", e.Result, "written", e.Written, "restarted", e.Restarted)
		}
	case applier.EventPlan, applier.EventReceived, applier.EventProbe, applier.EventConfirm:
	}
}
