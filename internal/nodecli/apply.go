package nodecli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/cli"
)

type applyFlags struct {
	identity
	format  cli.Format
	dryRun  bool
	reboot  bool
	full    bool
	text    bool
	impact  string
	wait    time.Duration
	confirm time.Duration
	restart []string
	// removeKeys accepts that the bundle removes the signing keys of the host.
	removeKeys bool
}

func applyCommand(p Program) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Apply the bundle on stdin to this host",
		Long: `Write only what differs, restart the services that read it, and roll back if a service does not become healthy. stdin is an
archive: the manifest and the contents that observe lists as missing. Events are printed, one per line.` +
			cli.ExitHelp(
				"0    the host has the state of the bundle", "2    refused, nothing was done",
				"4    in part: interrupted, waiting for a reboot, locked by another run, or a fault of this host",
				"5    rolled back, the host has its previous state", "130  interrupted",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.apply(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	flags.BoolVar(&f.reboot, "reboot", false, "reboot the host if something waits for it")
	flags.BoolVar(&f.full, "full", false, "read every file, also those that appear unchanged")
	flags.BoolVar(
		&f.removeKeys, "remove-signing-keys", false,
		"accept a bundle without signing keys on a host that has some: the node agent then accepts what no operator has signed",
	)
	textFlag(cmd, &f.text)
	f.add(cmd)
	f.addImpact(cmd)
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this host")
	flags.DurationVar(&f.confirm, "confirm-within", 0, "roll back unless 'wmco-node confirm' is called within this time")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}

func (p Program) apply(ctx context.Context, f applyFlags) error {
	impact, err := f.maxImpact()
	if err != nil {
		return err
	}
	e, err := p.engine("apply")
	if err != nil {
		return err
	}
	r, err := p.bundleIn(ctx, f.text)
	if err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	e.Emit = p.emitter(f.format)
	f.allow(e)
	o := applier.Options{
		DryRun: f.dryRun, MaxImpact: impact, Reboot: f.reboot, Full: f.full, LockWait: f.wait,
		RemoveSigningKeys: f.removeKeys,
	}
	if f.confirm > 0 {
		o.ConfirmWithin = f.confirm
		o.Confirm = func(ctx context.Context) error { return e.AwaitConfirm(ctx, r.Manifest.Digest) }
	}
	return ended(e.Apply(ctx, r.Manifest, r, o))
}

// ended returns the error of a run. One that waits for a boot or a confirmation has ended in part.
func ended(o applier.Outcome, err error) error {
	if err != nil {
		return err
	}
	if o.Result == protocol.ResultPartial {
		return &cli.ExitError{Status: cli.ExitPartial, Err: errors.New("the bundle is applied and waits for a confirmation")}
	}
	if o.Result == protocol.ResultReboot {
		return &cli.ExitError{
			Status: cli.ExitPartial,
			Err:    errors.New("some entries take effect only after a reboot: reboot this host and apply again"),
		}
	}
	return nil
}

func confirmCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm DIGEST",
		Short: "Confirm the bundle that is being applied",
		Long:  "End the wait of `apply --confirm-within` in another process, without a rollback." + cli.ExitHelp("0  done", "2  not a digest"),
		Args:  cli.Usage{Args: []string{"DIGEST"}}.Check,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := p.engine("confirm")
			if err != nil {
				return err
			}
			defer cli.Orderly(cmd.Context())()
			return e.Confirm(cmd.Context(), bundle.Digest(args[0]))
		},
	}
}

func factsCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:   "facts",
		Short: "Print the facts of this host",
		Long: "Print host name, addresses, routes, OS build, features, networks and the API server of the " +
			"kubelet as JSON: the input of `wmco render --facts`." + cli.ExitHelp("0  done"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.engine("facts")
			if err != nil {
				return err
			}
			facts, err := hostFacts(cmd.Context(), e.Host)
			if err != nil {
				return err
			}
			return p.print(facts)
		},
	}
}

func (f *applyFlags) addImpact(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&f.impact, "max-impact", string(bundle.ImpactReboot),
		"refuse a plan with a higher impact: none, restart, drain or reboot",
	)
}

func (f *applyFlags) maxImpact() (bundle.Impact, error) {
	impact := bundle.Impact(f.impact)
	if impact.Rank() > bundle.ImpactReboot.Rank() {
		return "", &cli.ExitError{
			Status: cli.ExitUsage,
			Err:    fmt.Errorf("--max-impact %s: write none, restart, drain or reboot", f.impact),
		}
	}
	return impact, nil
}

func repairCommand(p Program) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Restore the bundle that was applied last",
		Long: `Do once what run does periodically: restore what differs from the contents that are kept on this host, or resume or roll
back an interrupted run.` + cli.ExitHelp(
			"0    the host has the state of the bundle", "2    a content that is needed is not kept here",
			"4    in part: something could not be repaired, or waits for a reboot or a confirmation",
			"5    an interrupted run was rolled back", "130  interrupted",
		),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			impact, err := f.maxImpact()
			if err != nil {
				return err
			}
			e, err := p.engine("repair")
			if err != nil {
				return err
			}
			e.Emit = p.emitter(f.format)
			defer cli.Orderly(cmd.Context())()
			return ended(e.Repair(cmd.Context(), applier.Options{
				DryRun: f.dryRun, Full: f.full, LockWait: f.wait, MaxImpact: impact, Restart: f.restart,
			}))
		},
	}
	f.addImpact(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and stop before the first write")
	cmd.Flags().BoolVar(&f.full, "full", false, "read every file, also those that appear unchanged")
	cmd.Flags().StringArrayVar(
		&f.restart, "restart", nil,
		"restart a service of the bundle although nothing about it differs; may be repeated",
	)
	cmd.Flags().DurationVar(&f.wait, "wait", time.Minute, "how long to wait for another run on this host")
	cli.AddFormat(cmd, &f.format, cli.JSON, cli.Text)
	return cmd
}
