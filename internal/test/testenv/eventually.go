package testenv

import (
	"context"
	"fmt"
	"time"
)

// Limit is how long Eventually waits: only what hangs reaches it.
const Limit = 5 * time.Minute

// The pauses between two looks are multiples of what a look costs, so that tests do not take the processors from what
// they wait for: a look at a file is repeated after 20 ms, a list of the API server, which takes 10 ms, after 200 ms if
// something has changed there, after a second in any case.
const (
	shortestPause = 20 * time.Millisecond
	// pauseAfterChange and pauseWithoutChange are multiples of the duration of a look, in between those.
	pauseAfterChange, longestAfterChange     = 20, 500 * time.Millisecond
	pauseWithoutChange, longestWithoutChange = 100, 2 * time.Second
)

// Eventually waits until done returns true. It looks again when something in a cluster of this process has changed, and
// sometimes without that: what else tests wait for is seen by no watch.
func Eventually(ctx context.Context, what string, done func() bool) error {
	return changes.eventually(ctx, what, done)
}

func (n *notifier) eventually(ctx context.Context, what string, done func() bool) error {
	for begin := time.Now(); ; {
		change, began := n.next(), time.Now()
		if done() {
			return nil
		}
		if waited := time.Since(begin); waited > Limit {
			return fmt.Errorf("waiting for %s: it has not come within %s", what, waited.Round(time.Second))
		}
		if err := pause(ctx, time.Since(began), change); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// pause waits for the next look, after one that took this long.
func pause(ctx context.Context, look time.Duration, change <-chan struct{}) error {
	shortest := min(max(look*pauseAfterChange, shortestPause), longestAfterChange)
	longest := min(max(look*pauseWithoutChange, shortestPause), longestWithoutChange)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(shortest):
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-change:
	case <-time.After(longest - shortest):
	}
	return nil
}
