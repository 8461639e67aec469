package gateway

import (
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/gateway/places"
)

// listEvery is how often the list is written while it has the same registries.
const listEvery = 10 * time.Minute

// troubles are the registries for whose images no place answers. Its methods are safe for concurrent use.
type troubles struct {
	// write replaces the list; nil for none. A list that could not be written is written with the next outcome.
	write func([]places.Trouble) error

	mu       sync.Mutex
	failing  map[string]places.Trouble
	listed   []string
	listedAt time.Time
}

// noteOutcome notes whether a place of a registry answered; why is empty if one did.
func (t *troubles) noteOutcome(registry, why string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failing == nil {
		t.failing = map[string]places.Trouble{}
	}
	x, known := t.failing[registry]
	switch {
	case why == "":
		delete(t.failing, registry)
	case !known && len(t.failing) >= maxWatched:
		return
	default:
		if !known {
			x = places.Trouble{Registry: registry, Since: now}
		}
		x.Last, x.Reason = now, why
		t.failing[registry] = x
	}
	t.writeList(now)
}

// writeList writes the list if its registries changed, or after listEvery.
func (t *troubles) writeList(now time.Time) {
	var list []places.Trouble
	var names []string
	for _, x := range t.failing {
		if x.Last.Sub(x.Since) >= places.TroubleAfter {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(x, y places.Trouble) int { return strings.Compare(x.Registry, y.Registry) })
	for _, x := range list {
		names = append(names, x.Registry)
	}
	if slices.Equal(names, t.listed) && (len(names) == 0 || now.Sub(t.listedAt) < listEvery) {
		return
	}
	if t.write == nil || t.write(list) == nil {
		t.listed, t.listedAt = names, now
	}
}
