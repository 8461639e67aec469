package nodecli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/internal/cli"
)

type cleanupFlags struct {
	format  cli.Format
	dryRun  bool
	service bool
	wait    time.Duration
	logDir  string
}

func cleanupCommand(p Program) *cobra.Command {
	var f cleanupFlags
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove everything managed from this host",
		Long: `Stop and remove the services, files, settings and networks that were installed on this host, and what their programs wrote.
Logs, Windows features and the host name stay.` + cli.ExitHelp(
			"0    done", "4    in part: something could not be removed", "130  interrupted",
		),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.service {
				return p.removeNode(cmd.Context(), f)
			}
			e, err := p.engine("cleanup")
			if err != nil {
				return err
			}
			e.Emit = p.emitter(f.format)
			defer cli.Orderly(cmd.Context())()
			return ended(e.Cleanup(cmd.Context(), applier.Options{DryRun: f.dryRun, LockWait: f.wait}))
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	cmd.Flags().BoolVar(&f.service, "service", false, "run as the Windows service "+bundle.RemovalService+", which the node agent starts")
	cmd.Flags().StringVar(&f.logDir, "log-dir", "", "with --service: folder for logs (default stderr)")
	cmd.Flags().DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this host")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}

// removeNode is bundle.RemovalService: it ends when nothing is left on the host.
func (p Program) removeNode(ctx context.Context, f cleanupFlags) error {
	log, closeLogs, err := p.openLogs(f.logDir)
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	defer closeLogs()
	e, err := p.engine("cleanup --service")
	if err != nil {
		return err
	}
	server := agent.NewAPIServer(agent.Connection{
		Kubeconfig: applier.RemovalAccess, Log: log, Clock: p.Clock,
		ReadFile: func(string) ([]byte, error) { return e.ReadRemovalAccess(ctx) },
	})
	remover := agent.Remover{Engine: e, Cluster: server, Log: log, Jitter: jitter}
	return p.AsService(ctx, bundle.RemovalService, remover.Run)
}
