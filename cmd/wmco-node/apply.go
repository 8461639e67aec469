package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/cli"
)

type applyFlags struct {
	format  cli.Format
	dryRun  bool
	reboot  bool
	full    bool
	text    bool
	impact  string
	wait    time.Duration
	confirm time.Duration
}

func applyCommand(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make this machine what the bundle on stdin says",
		Long: `Write what differs and nothing else, start what has to be started anew, and put everything back when a service does not
come up. stdin is an archive: the manifest and the contents that observe said are missing. Events are printed, a line each.` +
			cli.ExitHelp("0    the machine is as the bundle says", "2    refused, nothing was done", "4    in part: interrupted, waiting for a boot, or locked by another run", "5    rolled back, the machine is as it was", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	flags.BoolVar(&f.reboot, "reboot", false, "reboot the machine if something waits for it")
	flags.BoolVar(&f.full, "full", false, "read every file, whatever is known of it")
	textFlag(cmd, &f.text)
	flags.StringVar(&f.impact, "max-impact", string(bundle.ImpactReboot), "refuse a plan that costs more: none, restart, drain or reboot")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this machine")
	flags.DurationVar(&f.confirm, "confirm-within", 0, "roll back unless 'wmco-node confirm' is called within this time")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}

func (a *app) apply(ctx context.Context, f applyFlags) error {
	impact := bundle.Impact(f.impact)
	if impact.Rank() > bundle.ImpactReboot.Rank() {
		return &cli.ExitError{Status: cli.ExitUsage, Err: fmt.Errorf("--max-impact %s: write none, restart, drain or reboot", f.impact)}
	}
	e, err := a.engine("apply")
	if err != nil {
		return err
	}
	r, err := a.bundleIn(f.text)
	if err != nil {
		return err
	}
	e.Emit = a.emitter(f.format)
	o := applier.Options{DryRun: f.dryRun, MaxImpact: impact, Reboot: f.reboot, Full: f.full, LockWait: f.wait}
	if f.confirm > 0 {
		o.ConfirmWithin = f.confirm
		o.Confirm = func(ctx context.Context) error { return e.AwaitConfirm(ctx, r.Manifest.Digest) }
	}
	return told(e.Apply(ctx, r, o))
}

// told leaves out what the last event said already, and makes of an end that waits for a boot what it is: half the way.
func told(o applier.Outcome, err error) error {
	if err != nil {
		return err
	}
	if o.Result == applier.ResultReboot {
		return &cli.ExitError{Status: cli.ExitPartial, Err: errors.New("the rest waits for the next boot of this machine: reboot it and apply again")}
	}
	return nil
}

func confirmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm DIGEST",
		Short: "Say that the bundle that is being applied works",
		Long:  "End the wait of `apply --confirm-within` in another process." + cli.ExitHelp("0  done", "2  not a digest"),
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.engine("confirm")
			if err != nil {
				return err
			}
			return e.Confirm(cmd.Context(), bundle.Digest(args[0]))
		},
	}
}

func factsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "facts",
		Short: "Print what this machine says of itself",
		Long:  "Print host name, addresses, routes, OS build, features and networks as JSON: the input of `wmco render --facts`." + cli.ExitHelp("0  done"),
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.engine("facts")
			if err != nil {
				return err
			}
			facts, err := e.Host.Facts(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(facts)
		},
	}
}

func repairCommand(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Bring this machine back to the bundle that was applied last",
		Long: `Do once what run does again and again: put back what differs from the contents that are kept here, or take up or undo an
application that was cut.` + cli.ExitHelp("0    the machine is as the bundle says", "2    a content that is needed is not kept here", "4    in part", "5    an application that was cut is undone", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.engine("repair")
			if err != nil {
				return err
			}
			e.Emit = a.emitter(f.format)
			return told(e.Repair(cmd.Context(), applier.Options{DryRun: f.dryRun, Full: f.full, LockWait: f.wait}))
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	cmd.Flags().BoolVar(&f.full, "full", false, "read every file, whatever is known of it")
	cmd.Flags().DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this machine")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}

func cleanupCommand(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove everything of ours from this machine",
		Long: `Stop and remove the services, files, settings and networks that were put on this machine, and what their programs wrote.
Logs stay, and so do Windows features and the host name.` + cli.ExitHelp("0    done", "4    in part: something could not be removed", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.engine("cleanup")
			if err != nil {
				return err
			}
			e.Emit = a.emitter(f.format)
			return told(e.Cleanup(cmd.Context(), applier.Options{DryRun: f.dryRun, LockWait: f.wait}))
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	cmd.Flags().DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this machine")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}
