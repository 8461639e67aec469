package remote

import (
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// TestAHostSaysWhatItWaitsFor goes through the events of a run, ten seconds apart.
func TestAHostSaysWhatItWaitsFor(t *testing.T) {
	w := NewAwaited([]bundle.Service{{Name: "kubelet", Probe: bundle.Probe{DeadlineSeconds: 120}}, {Name: "containerd", Probe: bundle.Probe{DeadlineSeconds: 60}}})
	start := func(service string, done int) applier.Event {
		return applier.Event{Event: applier.EventAction, Action: &plan.Action{Verb: plan.VerbStart, Entry: bundle.KindService.ID(service)}, Done: done, Total: 3}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		event applier.Event
		want  string
	}{
		{applier.Event{Event: applier.EventPlan, Total: 3}, ""},
		{applier.Event{Event: applier.EventAction, Action: &plan.Action{Verb: plan.VerbWrite, Entry: `file C:\k\kubelet.conf`}, Done: 1, Total: 3}, ""},
		{start("containerd", 2), ""},
		{start("kubelet", 3), "waiting for containerd, kubelet: 0s of 2m"},
		{applier.Event{Event: applier.EventProbe, Service: "containerd", Message: "healthy"}, "waiting for kubelet: 10s of 2m"},
		{applier.Event{Event: applier.EventNote}, "waiting for kubelet: 20s of 2m"},
		{start("no service of the bundle", 2), "waiting for kubelet: 30s of 2m"},
		{applier.Event{Event: applier.EventRollback, Message: "kubelet"}, ""},
		{start("kubelet", 3), "waiting for kubelet: 0s of 2m"},
		{applier.Event{Event: applier.EventProbe, Service: "kubelet", Message: "healthy"}, ""},
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
