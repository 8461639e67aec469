package nodecli

import (
	"time"

	"github.com/spf13/cobra"

	"wmco/internal/cli"
)

func stageCommand(p Program) *cobra.Command {
	var text bool
	var node identity
	var wait time.Duration
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "stage",
		Short: "Keep the executables of the bundle on stdin for later",
		Long: `Keep the executables that the archive on stdin brings until a bundle needs them. Nothing that runs on this host is changed. An
interrupted transfer is resumed by the next one. Events are printed, one per line.` +
			cli.ExitHelp(
				"0    this host has the executables", "2    contents are missing, or stdin cannot be read",
				"4    locked by another run, or a fault of this host", "130  interrupted",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.engine("stage")
			if err != nil {
				return err
			}
			r, err := p.bundleIn(cmd.Context(), text)
			if err != nil {
				return err
			}
			defer cli.Orderly(cmd.Context())()
			e.Emit = p.emitter(format)
			node.allow(e)
			return ended(e.Stage(cmd.Context(), r.Manifest, r, wait))
		},
	}
	textFlag(cmd, &text)
	node.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for another run on this host")
	cli.AddFormat(cmd, &format, cli.JSON, cli.Text)
	return cmd
}
