package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
)

// lockPause is the pause between two attempts to lock a host.
const lockPause = 200 * time.Millisecond

// lockHost waits while another run has the host locked, for as long as the options say.
func (e *Engine) lockHost(ctx context.Context, wait time.Duration) (func() error, error) {
	begin := e.Clock.Now()
	for {
		release, err := e.Host.Lock(ctx, e.Owner)
		var locked *LockedError
		if err == nil || !errors.As(err, &locked) || e.Clock.Now().Sub(begin) >= wait {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.Clock.After(lockPause):
		}
	}
}

// whileLocked does the work of the run while no other run changes the host. That the lock cannot be released changes
// nothing of what the run did: the lock of a process that ends is free.
func (r *run) whileLocked(ctx context.Context, work func() error) error {
	release, err := r.lockAndQuarantine(ctx)
	if err != nil {
		return err
	}
	err = work()
	if failed := release(); failed != nil {
		r.progress.addNote(fmt.Sprintf("releasing the lock: %v", failed))
	}
	return err
}

// lockAndQuarantine locks the host and sets aside the records that do not count. It comes before anything of ours is
// written, and before folders get our access: until then their owner and access show who made them.
func (r *run) lockAndQuarantine(ctx context.Context) (release func() error, err error) {
	// An error may be that another run is removing its records at this moment: the lock waits for that, and it is asked
	// again.
	bad, _ := records.UntrustedRecords(ctx, r.engine.Host)
	var moved []string
	if slices.Contains(bad, plan.StateFolder) {
		if r.options.DryRun {
			return func() error { return nil }, nil // no process of ours has its lock there
		}
		// The lock makes the next one, unless its maker does so before: then the lock is refused.
		beside, err := records.MoveBeside(ctx, r.engine.Host, plan.StateFolder, r.engine.Clock.Now())
		if err != nil {
			return nil, err
		}
		moved = append(moved, beside)
	}
	if release, err = r.engine.lockHost(ctx, r.options.LockWait); err != nil || r.options.DryRun {
		return release, err
	}
	if bad, err = records.UntrustedRecords(ctx, r.engine.Host); err == nil {
		for _, path := range append(moved, bad...) {
			err = errors.Join(err, r.quarantine.setAside(ctx, path))
		}
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
