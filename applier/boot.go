package applier

import (
	"context"
	"fmt"

	"wmco/applier/records"
	"wmco/bundle"
)

// awaits tells whether an earlier run left the rest of a bundle to the boot that has yet to come.
func (r *run) awaits(record records.Bundle) bool {
	j := r.s.Journal
	return j.Phase == records.PhaseReboot && j.Boot == r.s.facts.BootTime && j.Bundle.Manifest.Digest == record.Manifest.Digest
}

// awaitBoot leaves the rest to the run after the next boot of the machine.
func (r *run) awaitBoot(ctx context.Context) error {
	j := r.s.Journal
	j.Phase = records.PhaseReboot
	if err := r.enter(ctx, j); err != nil {
		return err
	}
	r.result, r.applying = ResultReboot, false
	return r.reboot(ctx)
}

// reboot reboots the machine where something waits for it and the caller allows it.
func (r *run) reboot(ctx context.Context) error {
	if len(r.pending) == 0 || !r.options.Reboot {
		return nil
	}
	if Allowed(bundle.ImpactReboot, r.options.MaxImpact) != nil {
		r.note(fmt.Sprintf("not rebooting the machine: allowed is impact %s", r.options.MaxImpact))
		return nil //nolint:nilerr // it is no error that the boot is left to somebody else
	}
	r.note("rebooting the machine")
	return r.Host.Reboot(ctx, fmt.Sprintf("%s comes into force with a boot", r.pending[0]))
}
