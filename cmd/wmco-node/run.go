package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
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
		Short: "Keep this machine as the bundle that was applied last says",
		Long: `Compare the machine with that bundle again and again, repair what differs from the contents that are kept here, take up or
undo an application that was cut, and keep logs within their bounds.` +
			cli.ExitHelp("0    asked to stop", "2    usage", "4    its own service was configured anew: started again, it runs with that", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.service {
				return a.keep(cmd.Context(), f)
			}
			return asService(cmd.Context(), func(ctx context.Context) error { return a.keep(ctx, f) })
		},
	}
	flags := cmd.Flags()
	// A flag and not svc.IsWindowsService: what looks at the session or the parent is not reliable everywhere.
	flags.BoolVar(&f.service, "service", false, "run as the Windows service "+bundle.AgentService)
	flags.BoolVar(&f.reportOnly, "report-only", false, "tell what differs and repair nothing")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster that publishes bundles")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for logs; without, they go to stderr")
	flags.DurationVar(&f.interval, "interval", 5*time.Minute, "time between two comparisons")
	flags.DurationVar(&f.full, "full-interval", 6*time.Hour, "time between two comparisons that read every file")
	return cmd
}

// errRestart ends the program so that the service control manager starts it anew.
var errRestart = &cli.ExitError{Status: cli.ExitPartial, Err: errors.New("the service of this program was configured anew")}

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

// housekeepInterval is the time between two looks at logs at most: a log can outgrow its size by what comes in between.
const housekeepInterval = 30 * time.Second

// keeper is what one turn after another needs.
type keeper struct {
	engine *applier.Engine
	log    *slog.Logger
	flags  runFlags
	// read is when every file was read last.
	read time.Time
	// differs is what the last turn told and did not repair, now what the present one found.
	differs, now []applier.Action
}

// turn compares and repairs once. Only what ends the program is an error.
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
		k.log.Info("another run is changing this machine", "owner", locked.Owner)
	case err != nil:
		k.log.Error("repairing", "error", err)
	default:
		if o.Full {
			k.read = now
		}
	}
	if outcome.RestartSelf {
		k.log.Info("restarting: the service was configured anew")
		return errRestart
	}
	return nil
}

// housekeep bounds logs and what else piles up.
func (k *keeper) housekeep(ctx context.Context) {
	if err := k.engine.Housekeep(ctx); err != nil && ctx.Err() == nil {
		k.log.Warn("bounding logs", "error", err)
	}
}

// report tells what differs and is left as it is, when that has changed.
func (k *keeper) report() {
	if slices.Equal(k.now, k.differs) {
		return
	}
	k.differs = k.now
	if len(k.now) == 0 {
		k.log.Info("nothing differs any more")
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
