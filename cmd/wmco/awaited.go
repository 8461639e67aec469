package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// awaited is what a host waits for, after its actions: services that have to become healthy within their deadlines.
type awaited struct {
	// deadlines are those of the services of the host's bundle, by name.
	deadlines map[string]time.Duration
	// services were started and are not healthy yet, since all actions were done.
	services []string
	since    time.Time
}

// newAwaited is for a host that gets a bundle.
func newAwaited(services []bundle.Service) *awaited {
	w := &awaited{deadlines: map[string]time.Duration{}}
	for _, s := range services {
		w.deadlines[s.Name] = time.Duration(s.Probe.DeadlineSeconds) * time.Second
	}
	return w
}

// noteEvent notes an event at the time that it arrived. The clock of a host is its own.
func (w *awaited) noteEvent(e applier.Event, now time.Time) {
	switch e.Event {
	case applier.EventPlan, applier.EventConfirm, applier.EventRollback, applier.EventResult:
		w.services, w.since = nil, time.Time{}
	case applier.EventAction:
		if e.Action == nil {
			return
		}
		if name, ok := strings.CutPrefix(string(e.Action.Entry), string(bundle.KindService)+" "); ok && e.Action.Verb == plan.VerbStart {
			w.services = append(w.services, name)
		}
		if e.Done == e.Total {
			w.since = now
		}
	case applier.EventProbe:
		for i, s := range w.services {
			if s == e.Service {
				w.services = append(w.services[:i:i], w.services[i+1:]...)
				break
			}
		}
	case applier.EventNote, applier.EventReceived:
	}
}

// waitingText says what the host waits for, such as "waiting for kubelet: 1m20s of 2m"; empty while it waits for nothing.
func (w *awaited) waitingText(now time.Time) string {
	if w == nil || len(w.services) == 0 || w.since.IsZero() {
		return ""
	}
	var longest time.Duration
	for _, s := range w.services {
		longest = max(longest, w.deadlines[s])
	}
	text := fmt.Sprintf("waiting for %s: %s", fewNames(w.services), wholeSeconds(now.Sub(w.since)))
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

// sending counts the bytes that leave for one host.
type sending struct {
	archive.Source
	sent atomic.Int64
	// said is how many were sent at the last call of text.
	said int64
}

// Open implements archive.Source.
func (s *sending) Open(sha256 string) (io.ReadCloser, error) {
	r, err := s.Source.Open(sha256)
	if err != nil {
		return nil, err
	}
	all := counted{r, &s.sent}
	if seeker, ok := r.(io.Seeker); ok {
		return struct {
			counted
			io.Seeker
		}{all, seeker}, nil
	}
	return all, nil
}

// sendingText says what is being sent; empty if nothing has been sent since the last call.
func (s *sending) sendingText() string {
	sent := s.sent.Load()
	if sent == s.said {
		return ""
	}
	s.said = sent
	return "sending " + size(sent)
}

// counted adds what is read from it to a number.
type counted struct {
	io.ReadCloser
	sum *atomic.Int64
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Add(int64(n))
	return n, err
}
