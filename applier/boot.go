package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// awaitsBoot reports whether an earlier run left the rest of the bundle to a boot that has not happened yet.
func (r *run) awaitsBoot(record records.BundleRecord) bool {
	j := r.records.Journal
	return j.Phase == records.PhaseReboot && j.Boot == r.situation.facts.BootTime && j.Bundle.Manifest.Digest == record.Manifest.Digest
}

// awaitBoot leaves the rest to the first run after the next boot.
func (r *run) awaitBoot(ctx context.Context) error {
	j := r.records.Journal
	j.Phase = records.PhaseReboot
	if err := r.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	r.progress.result, r.records.Applying = protocol.ResultReboot, false
	return r.rebootHost(ctx)
}

// rebootHost reboots the host if something waits for it and the caller allows it.
func (r *run) rebootHost(ctx context.Context) error {
	if len(r.progress.pending) == 0 || !r.options.Reboot {
		return nil
	}
	if CheckImpact(bundle.ImpactReboot, r.options.MaxImpact) != nil {
		r.progress.addNote(fmt.Sprintf("not rebooting the host: at most impact %s is allowed", r.options.MaxImpact))
		return nil //nolint:nilerr // leaving the boot to the caller is no error
	}
	r.progress.addNote("rebooting the host")
	return r.engine.Host.Reboot(ctx, fmt.Sprintf("%s takes effect with a reboot", r.progress.pending[0]))
}

// ErrBootTime means that the host does not say when it booted: whether it has booted for a request could not be told
// afterwards.
var ErrBootTime = errors.New("the host does not report when it booted")

// BootOnce boots the host for a request, unless it has booted for it before. It reports whether it has: a boot that was
// begun, and that has not happened because the process or the host was interrupted, is begun again. Reason is for the
// event log of Windows.
func (e *Engine) BootOnce(ctx context.Context, request bundle.Digest, reason string, wait time.Duration) (booted bool, err error) {
	if err := request.Validate(); err != nil {
		return false, err
	}
	err = newRun(e, Options{LockWait: wait}).whileLocked(ctx, func() (err error) {
		booted, err = e.bootOnce(ctx, request, reason)
		return err
	})
	return booted, err
}

func (e *Engine) bootOnce(ctx context.Context, request bundle.Digest, reason string) (bool, error) {
	if err := e.prepareFolders(ctx); err != nil {
		return false, err
	}
	facts, err := e.Host.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("gathering facts: %w", err)
	}
	b, err := records.ReadBoots(ctx, e.Host)
	switch {
	case err != nil:
		return false, err
	case facts.BootTime == "":
		return false, ErrBootTime
	case slices.Contains(bootsDone(b, facts.BootTime), request):
		return true, nil
	case b.Begun != request:
		next := records.Boots{Program: e.Program, Time: e.Clock.Now(), Begun: request, Boot: facts.BootTime, Done: b.Done}
		if b.Begun != "" { // where the host has not booted for it yet, it is done with the boot for this one
			next.Done = append([]bundle.Digest{b.Begun}, b.Done...)
		}
		if err := records.WriteBoots(ctx, e.Host, next); err != nil {
			return false, err
		}
	}
	return false, e.Host.Reboot(ctx, reason)
}

// bootsDone returns the requests for which the host has booted, the latest first.
func bootsDone(b records.Boots, bootTime string) []bundle.Digest {
	if b.Begun == "" || b.Boot == bootTime {
		return b.Done
	}
	return append([]bundle.Digest{b.Begun}, b.Done...)
}

// LastBoot returns the request for which the host has booted last; empty if there was none.
func (e *Engine) LastBoot(ctx context.Context) (bundle.Digest, error) {
	b, err := records.ReadBoots(ctx, e.Host)
	if err != nil || b.Begun == "" && len(b.Done) == 0 {
		return "", err
	}
	facts, err := e.Host.Facts(ctx)
	if err != nil {
		return "", fmt.Errorf("gathering facts: %w", err)
	}
	if done := bootsDone(b, facts.BootTime); len(done) > 0 {
		return done[0], nil
	}
	return "", nil
}
