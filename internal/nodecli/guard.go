package nodecli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/cli"
)

func guardCommand(p Program) *cobra.Command {
	var service bool
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Wait until a new node agent has confirmed its bundle, and roll back if it does not",
		Long: `Wait until the node agent that runs as the service ` + bundle.AgentService + ` has confirmed the bundle with which it came.
If it does not in time, stop it, roll back the bundle, and start the node agent from before. Where no agent is being exchanged, end at once.

The node agent runs this command of the program before it, as the service ` + bundle.GuardService + `, while it is exchanged.` +
			cli.ExitHelp("0    nothing to restore", "4    restoring failed", "5    the bundle was rolled back", "130  interrupted"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.engine("guard")
			if err != nil {
				return err
			}
			e.GuardWait = p.Guard
			guard := func(ctx context.Context) error {
				_, err := e.GuardHandover(ctx, bundle.AgentService)
				return err
			}
			if !service {
				return guard(cmd.Context())
			}
			return p.AsService(cmd.Context(), bundle.GuardService, func(ctx context.Context) error {
				var back *applier.RolledBackError
				if err := guard(ctx); !errors.As(err, &back) {
					return err
				}
				return nil // it has done its work
			})
		},
	}
	cmd.Flags().BoolVar(&service, "service", false, "run as a Windows service")
	return cmd
}
