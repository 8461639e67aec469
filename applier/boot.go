package applier

import (
	"context"
	"fmt"

	"wmco/applier/records"
	"wmco/bundle"
)

// awaitsBoot reports whether an earlier run left the rest of the bundle to a boot that has not happened yet.
func (r *run) awaitsBoot(record records.BundleRecord) bool {
	j := r.situation.Journal
	return j.Phase == records.PhaseReboot && j.Boot == r.situation.facts.BootTime && j.Bundle.Manifest.Digest == record.Manifest.Digest
}

// awaitBoot leaves the rest to the first run after the next boot.
func (r *run) awaitBoot(ctx context.Context) error {
	j := r.situation.Journal
	j.Phase = records.PhaseReboot
	if err := r.writeJournal(ctx, j); err != nil {
		return err
	}
	r.result, r.applying = ResultReboot, false
	return r.rebootHost(ctx)
}

// rebootHost reboots the host if something waits for it and the caller allows it.
func (r *run) rebootHost(ctx context.Context) error {
	if len(r.pending) == 0 || !r.options.Reboot {
		return nil
	}
	if CheckImpact(bundle.ImpactReboot, r.options.MaxImpact) != nil {
		r.emitNote(fmt.Sprintf("not rebooting the host: at most impact %s is allowed", r.options.MaxImpact))
		return nil //nolint:nilerr // leaving the boot to somebody else is no error
	}
	r.emitNote("rebooting the host")
	return r.Host.Reboot(ctx, fmt.Sprintf("%s takes effect with a reboot", r.pending[0]))
}
