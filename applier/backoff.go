package applier

import (
	"errors"
	"time"

	"wmco/bundle"
)

// Backoff remembers the entries that could not be repaired, so that they are not retried at once: each try may stop
// services. The pause doubles with each failure, from firstPause to lastPause; for a full disk it stays firstPause, as
// a file that has no room stops no service. It belongs to one Engine and is empty at first.
type Backoff struct{ failures map[bundle.EntryID]failure }

// failure is why and how often the repair of an entry failed.
type failure struct {
	why    error
	pause  time.Duration
	failed time.Time
}

const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// pausedEntries returns the entries that are not to be tried at a time. One whose failure is in the future is tried:
// the clock was set back.
func (b *Backoff) pausedEntries(now time.Time) map[bundle.EntryID]bool {
	ids := map[bundle.EntryID]bool{}
	for id, f := range b.failures {
		if since := now.Sub(f.failed); since >= 0 && since < f.pause {
			ids[id] = true
		}
	}
	return ids
}

// noteRepair notes how a repair ended: what failed, and what was not tried. Everything else is forgotten.
func (b *Backoff) noteRepair(now time.Time, failed map[bundle.EntryID]error, skipped []bundle.EntryID) {
	old := b.failures
	b.failures = map[bundle.EntryID]failure{}
	for _, id := range skipped {
		if f, ok := old[id]; ok {
			b.failures[id] = f
		}
	}
	for id, why := range failed {
		longest := lastPause
		if errors.Is(why, ErrDiskFull) {
			longest = firstPause
		}
		b.failures[id] = failure{why: why, failed: now, pause: min(max(2*old[id].pause, firstPause), longest)}
	}
}
