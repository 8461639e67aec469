package nodecli

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/gateway/registry"
	"wmco/internal/cli"
	"wmco/payload/fetch"
)

func runCommand(p Program) *cobra.Command {
	var f agent.Flags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this host in the state of the bundle that the cluster publishes for it",
		Long: `With --kubeconfig, watch the Node of this host, fetch the bundle that is published for it, apply it and report on the Node. What
costs more than is allowed is reported and not done.

Periodically compare the host with the bundle that was applied last, repair what differs from the contents that are kept on this
host, resume or roll back an interrupted run, and keep logs within their limits.` +
			cli.ExitHelp(
				"0    asked to stop", "2    usage",
				"4    its own service was reconfigured: a restart runs it with the new configuration",
				"130  interrupted",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.Service {
				return p.keep(cmd.Context(), f)
			}
			return p.AsService(cmd.Context(), bundle.AgentService, func(ctx context.Context) error { return p.keep(ctx, f) })
		},
	}
	f.AddToFlags(cmd.Flags())
	return cmd
}

// errRestart ends the program so that the service control manager restarts it.
var errRestart = &cli.ExitError{Status: cli.ExitPartial, Err: agent.ErrRestart}

// keep runs the agent until the context ends.
func (p Program) keep(ctx context.Context, f agent.Flags) error {
	defer cli.Orderly(ctx)()
	log, closeLogs, err := p.openLogs(f.LogDir)
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	defer closeLogs()
	e, err := p.engine("run")
	if err != nil {
		return err
	}
	if f.Service {
		e.Self = bundle.AgentService
	}
	options := f.ParsedOptions()
	options.Jitter = jitter
	keeper := agent.Agent{Engine: e, Log: log, Options: options}
	if f.Kubeconfig != "" {
		keeper.Cluster = agent.NewAPIServer(agent.Connection{
			Kubeconfig: f.Kubeconfig, ReadFile: os.ReadFile, Log: log, Clock: p.Clock,
			Pages: published.Pages(p.SourceTree), Spread: spread,
		})
	}
	verified, insecure := registry.Options{Proxy: *httpproxy.FromEnvironment()}.Transports()
	keeper.Registry = &fetch.Single{Client: &registry.Client{Now: p.Clock.Now, Verified: verified, Insecure: insecure}}
	if keeper.Images, err = p.Host.Images(); err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	log.Info("started", "version", p.Version, "interval", f.Interval, "reportOnly", f.ReportOnly, "kubeconfig", f.Kubeconfig)
	if err := keeper.Run(ctx); err != nil {
		return errRestart
	}
	log.Info("stopped")
	return nil
}

// spread returns a time below d.
func spread(d time.Duration) time.Duration { return rand.N(d) }

// jitter makes agents that were started together act at different times: up to a fifth later.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/5+1) }
