package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/agent"
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
		Short: "Keep this host in the state of the bundle that the cluster publishes for it",
		Long: `With --kubeconfig, watch the Node of this host, fetch the bundle that is published for it, apply it and report on the Node. What
costs more than is allowed is reported and not done.

Periodically compare the host with the bundle that was applied last, repair what differs from the contents that are kept on this
host, resume or roll back an interrupted run, and keep logs within their limits.` +
			cli.ExitHelp("0    asked to stop", "2    usage", "4    its own service was reconfigured: a restart runs it with the new configuration", "130  interrupted"),
		Args: cli.Usage{}.Check,
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
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the API server as this node: follow the bundle that is published (default: none is followed)")
	flags.StringVar(&f.logDir, "log-dir", "", "folder for logs (default stderr)")
	flags.DurationVar(&f.interval, "interval", 5*time.Minute, "time between two comparisons")
	flags.DurationVar(&f.full, "full-interval", 6*time.Hour, "time between two comparisons that read every file")
	return cmd
}

// errRestart ends the program so that the service control manager restarts it.
var errRestart = &cli.ExitError{Status: cli.ExitPartial, Err: agent.ErrRestart}

// keep runs the agent until the context ends.
func (a *app) keep(ctx context.Context, f runFlags) error {
	defer cli.Orderly(ctx)()
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
	agent := agent.Agent{Engine: e, Log: log, Options: agent.Options{ReportOnly: f.reportOnly, Interval: f.interval, Full: f.full, Jitter: jitter}}
	if f.kubeconfig != "" {
		agent.Cluster = newCluster(f.kubeconfig, log, a.clock)
	}
	log.Info("started", "version", a.version, "interval", f.interval, "reportOnly", f.reportOnly, "kubeconfig", f.kubeconfig)
	if err := agent.Run(ctx); err != nil {
		return errRestart
	}
	log.Info("stopped")
	return nil
}

func newCluster(kubeconfig string, log *slog.Logger, clock applier.Clock) agent.Cluster {
	return agent.NewAPIServer(agent.Connection{Kubeconfig: kubeconfig, ReadFile: os.ReadFile, Log: log, Clock: clock})
}

// jitter makes agents that were started together act at different times: up to a fifth later.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/5+1) }
