package remote

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Awaited is what a host waits for, after its actions: services that have to become healthy within their deadlines.
type Awaited struct {
	// deadlines are those of the services of the host's bundle, by name.
	deadlines map[string]time.Duration
	// services were started and are not healthy yet, since all actions were done.
	services []string
	since    time.Time
}

// NewAwaited is for a host that gets a bundle.
func NewAwaited(services []bundle.Service) *Awaited {
	w := &Awaited{deadlines: map[string]time.Duration{}}
	for _, s := range services {
		w.deadlines[s.Name] = time.Duration(s.Probe.DeadlineSeconds) * time.Second
	}
	return w
}

// NoteEvent notes an event at the time that it arrived. The clock of a host is its own, and it may name any service:
// those of its bundle count.
func (w *Awaited) NoteEvent(e protocol.Event, now time.Time) {
	switch e.Event {
	case protocol.EventPlan, protocol.EventConfirm, protocol.EventRollback, protocol.EventResult:
		w.services, w.since = nil, time.Time{}
	case protocol.EventAction:
		if e.Action == nil {
			return
		}
		name, ok := strings.CutPrefix(string(e.Action.Entry), string(bundle.KindService)+" ")
		if ok && e.Action.Verb == protocol.VerbStart && w.isAwaitable(name) {
			w.services = append(w.services, name)
		}
		if e.Done == e.Total {
			w.since = now
		}
	case protocol.EventProbe:
		for i, s := range w.services {
			if s == e.Service {
				w.services = append(w.services[:i:i], w.services[i+1:]...)
				break
			}
		}
	case protocol.EventNote, protocol.EventReceived, protocol.EventFetching:
	}
}

// isAwaitable reports whether a service is one of the bundle's that is not waited for yet.
func (w *Awaited) isAwaitable(service string) bool {
	_, known := w.deadlines[service]
	return known && !slices.Contains(w.services, service)
}

// WaitingText is what the host waits for, such as "waiting for kubelet: 1m20s of 2m"; empty while it waits for
// nothing.
func (w *Awaited) WaitingText(now time.Time) string {
	if w == nil || len(w.services) == 0 || w.since.IsZero() {
		return ""
	}
	var longest time.Duration
	for _, s := range w.services {
		longest = max(longest, w.deadlines[s])
	}
	text := fmt.Sprintf("waiting for %s: %s", bundle.JoinFirst(w.services, 3, ", ", bundle.AndOthers), wholeSeconds(now.Sub(w.since)))
	if longest > 0 {
		text += " of " + wholeSeconds(longest)
	}
	return text
}

// wholeSeconds is a duration in whole seconds: 20s, 1m20s, 2m.
func wholeSeconds(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		return whole + "m"
	}
	return text
}
