package gateway

import (
	"slices"
	"sync"
	"time"

	"wmco/gateway/places"
)

const (
	// maxFailures is after how many failures in a row a registry is asked last, for the time of restLimit.
	maxFailures = 3
	restLimit   = 5 * time.Minute
	// maxWatched bounds how many registries are remembered.
	maxWatched = 1024
)

// health remembers which registries do not answer. "Not found" is an answer.
type health struct {
	mu     sync.Mutex
	failed map[string]failures
}

type failures struct {
	inRow int
	last  time.Time
}

func newHealth() *health { return &health{failed: map[string]failures{}} }

// outcome is whether a registry answers.
type outcome string

const (
	answered outcome = "answered"
	silent   outcome = "silent"
)

func (h *health) noteOutcome(registry string, o outcome, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o == answered {
		delete(h.failed, registry)
		return
	}
	if _, known := h.failed[registry]; !known && len(h.failed) >= maxWatched {
		clear(h.failed)
	}
	h.failed[registry] = failures{h.failed[registry].inRow + 1, now}
}

// orderPlaces moves places that failed often recently to the end.
func (h *health) orderPlaces(list []places.Place, now time.Time) []places.Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	list = slices.Clone(list)
	rests := func(p places.Place) int {
		if f := h.failed[p.Registry]; f.inRow >= maxFailures && now.Sub(f.last) < restLimit {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(x, y places.Place) int { return rests(x) - rests(y) })
	return list
}

// distrust notes a registry that sent something with another digest: it is asked last from now on.
func (h *health) distrust(registry string, now time.Time) {
	for range maxFailures {
		h.noteOutcome(registry, silent, now)
	}
}
