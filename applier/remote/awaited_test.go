package remote

import (
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// TestAHostSaysWhatItWaitsFor goes through the events of a run, ten seconds apart.
func TestAHostSaysWhatItWaitsFor(t *testing.T) {
	w := NewAwaited([]bundle.Service{{Name: "kubelet", Probe: bundle.Probe{DeadlineSeconds: 120}}, {Name: "containerd", Probe: bundle.Probe{DeadlineSeconds: 60}}})
	start := func(service string, done int) protocol.Event {
		return protocol.Event{Event: protocol.EventAction, Action: &protocol.Action{Verb: protocol.VerbStart, Entry: bundle.KindService.ID(service)}, Done: done, Total: 3}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		event protocol.Event
		want  string
	}{
		{protocol.Event{Event: protocol.EventPlan, Total: 3}, ""},
		{protocol.Event{Event: protocol.EventAction, Action: &protocol.Action{Verb: protocol.VerbWrite, Entry: `file C:\k\kubelet.conf`}, Done: 1, Total: 3}, ""},
		{start("containerd", 2), ""},
		{start("kubelet", 3), "waiting for containerd, kubelet: 0s of 2m"},
		{protocol.Event{Event: protocol.EventProbe, Service: "containerd", Message: "healthy"}, "waiting for kubelet: 10s of 2m"},
		{protocol.Event{Event: protocol.EventNote}, "waiting for kubelet: 20s of 2m"},
		{start("no service of the bundle", 2), "waiting for kubelet: 30s of 2m"},
		{protocol.Event{Event: protocol.EventRollback, Message: "kubelet"}, ""},
		{start("kubelet", 3), "waiting for kubelet: 0s of 2m"},
		{protocol.Event{Event: protocol.EventProbe, Service: "kubelet", Message: "healthy"}, ""},
	} {
		w.NoteEvent(step.event, now)
		if got := w.WaitingText(now); got != step.want {
			t.Errorf("after %s: %q, want %q", step.event.Event, got, step.want)
		}
		now = now.Add(10 * time.Second)
	}
	if got := (*Awaited)(nil).WaitingText(now); got != "" {
		t.Errorf("a host without a bundle: %q", got)
	}
}
