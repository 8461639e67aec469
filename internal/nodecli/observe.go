package nodecli

import (
	"context"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle/archive"
	"wmco/internal/cli"
)

func observeCommand(p Program) *cobra.Command {
	var full bool
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Print how this host differs from the bundle on stdin",
		Long: `Print facts, what apply would do, and which contents it would need, as one JSON value. stdin is a MANIFEST.json, or an
archive as for apply. Nothing on the host changes.` + cli.ExitHelp(
			"0  the host has the state of the bundle", "1  it differs", "2  stdin cannot be read",
			"4  this host cannot be read",
		),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.compare(cmd.Context(), f, func(e *applier.Engine, r *archive.Reader) (protocol.Observation, error) {
				return e.Observe(cmd.Context(), r.Manifest, r.Contents(), full)
			})
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "read every file, also those that appear unchanged")
	f.add(cmd)
	return cmd
}

// compareFlags are those of commands that compare.
type compareFlags struct {
	node   identity
	format cli.Format
	text   bool
}

func (f *compareFlags) add(cmd *cobra.Command) {
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	textFlag(cmd, &f.text)
	f.node.add(cmd)
}

func verifyCommand(p Program) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Print how this host differs from the bundle on stdin, and check every file and service",
		Long: `As observe, but every file is read, and every service is asked whether it is healthy.` +
			cli.ExitHelp(
				"0  the host has the state of the bundle and is healthy", "1  it differs, or a service is unhealthy",
				"2  stdin cannot be read", "4  this host cannot be read",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.compare(cmd.Context(), f, func(e *applier.Engine, r *archive.Reader) (protocol.Observation, error) {
				return e.Verify(cmd.Context(), r.Manifest, r.Contents())
			})
		},
	}
	f.add(cmd)
	return cmd
}

// compare reads the bundle, asks and prints. The exit status is 1 if anything differs.
func (p Program) compare(
	ctx context.Context, f compareFlags, ask func(*applier.Engine, *archive.Reader) (protocol.Observation, error),
) error {
	e, err := p.engine("observe")
	if err != nil {
		return err
	}
	f.node.allow(e)
	r, err := p.bundleIn(ctx, f.text)
	if err != nil {
		return err
	}
	o, err := ask(e, r)
	if err != nil {
		return err
	}
	if err := p.printObservation(f.format, o); err != nil {
		return err
	}
	if !o.InSync || len(o.Unhealthy) > 0 {
		return cli.Exit(cli.ExitDiffers)
	}
	return nil
}
