package rollout

import (
	"sync"
	"time"
)

// settle is how long inputs must stay the same before they are rendered: changes that are applied together are rendered once.
// Changes that do not end keep them from it for settleLimit times as long.
const (
	settle      = time.Second
	settleLimit = 10
)

// debouncer knows when the inputs of bundles have changed.
//
//	changed --> settled: a second without another change, ten at most --> taken: rendered once
type debouncer struct {
	now    func() time.Time
	settle time.Duration

	mu sync.Mutex
	// first and last are those of the changes that were not taken; zero where there is none.
	first, last time.Time
}

// noteChange notes a change.
func (i *debouncer) noteChange() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = i.now()
	if i.first.IsZero() {
		i.first = i.last
	}
}

// untilSettled returns how long it takes until the changes have settled: 0 if they have, or if there is none.
func (i *debouncer) untilSettled() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.first.IsZero() {
		return 0
	}
	due := i.last.Add(i.settle)
	if limit := i.first.Add(settleLimit * i.settle); limit.Before(due) {
		due = limit
	}
	return max(due.Sub(i.now()), 0)
}

// takeChange reports whether there was a change since the last call. It is called before the inputs are read: a change
// that comes while they are read is another one.
func (i *debouncer) takeChange() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	was := !i.first.IsZero()
	i.first, i.last = time.Time{}, time.Time{}
	return was
}
