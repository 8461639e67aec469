package applier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// confirmation asks the caller whether a run may stay.
type confirmation struct {
	host     Host
	clock    Clock
	records  *records.Records
	progress *progress
	// agreed reports whether the run is confirmed.
	agreed bool
}

// awaitConfirmer waits until the run is confirmed; where ask is nil, it needs no confirmation or nothing here can ask for it.
func (c *confirmation) awaitConfirmer(ctx context.Context, ask func(context.Context) error) error {
	if ask == nil || c.agreed {
		return nil
	}
	// A confirmation that came too late for an earlier run does not count for this one.
	if err := c.host.Remove(ctx, records.FileConfirm); err != nil {
		return fmt.Errorf("removing %s: %w", records.FileConfirm, err)
	}
	j := c.records.Journal
	j.Phase, j.Waiting.Since = records.PhaseConfirming, c.clock.SinceBoot()
	if err := c.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	return c.pollConfirmer(ctx, ask, j.Waiting.Limit)
}

// pollConfirmer asks for the confirmation until its time is up.
func (c *confirmation) pollConfirmer(ctx context.Context, ask func(context.Context) error, within time.Duration) error {
	j := c.records.Journal
	c.progress.sendEvent(protocol.Event{Event: protocol.EventConfirm, Bundle: j.Bundle.Manifest.Digest, Message: "waiting for confirmation"})
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := c.clock.After(within)
	go func() {
		select {
		case <-late:
			cancel(errUnconfirmed)
		case <-limited.Done():
		}
	}()
	if err := ask(limited); err != nil {
		switch cause := context.Cause(limited); {
		case !errors.Is(cause, errUnconfirmed):
			return err
		case errors.Is(err, context.Canceled):
			return cause
		default:
			return fmt.Errorf("%w: %w", cause, err)
		}
	}
	return ctx.Err() // an answer that comes because the process is asked to stop is none
}

var errUnconfirmed = errors.New("not confirmed in time")

// leastWait is how long a confirmer is asked whose deadline passed while it could not be asked.
const leastWait = 30 * time.Second

// confirmedDigest returns the digest that the caller confirmed, by Confirm in another process.
func (e *Engine) confirmedDigest(ctx context.Context) (bundle.Digest, error) {
	data, err := records.ReadAll(ctx, e.Host, records.FileConfirm)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return bundle.Digest(data), err
}

// Confirm confirms a bundle that another process is applying.
func (e *Engine) Confirm(ctx context.Context, d bundle.Digest) error {
	if err := d.Validate(); err != nil {
		return err
	}
	bad, err := records.UntrustedRecords(ctx, e.Host)
	if err != nil {
		return err
	}
	if slices.Contains(bad, plan.StateFolder) {
		return &RefusedError{Why: "nothing waits for a confirmation: " + plan.StateFolder +
			" can be changed by others than SYSTEM and Administrators"}
	}
	return e.Host.Write(ctx, records.FileConfirm, bundle.AccessAdmins, strings.NewReader(string(d)))
}

// AwaitConfirm waits until another process calls Confirm for the bundle.
func (e *Engine) AwaitConfirm(ctx context.Context, d bundle.Digest) error {
	for {
		have, err := e.confirmedDigest(ctx)
		if err != nil || have == d {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Clock.After(lockPause):
		}
	}
}
