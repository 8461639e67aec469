package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

// TestWhatAnInterruptedRunMeans for its host: stopped services, automatic steps and their time, and the faster way.
func TestWhatAnInterruptedRunMeans(t *testing.T) {
	services := []bundle.Service{{Name: "containerd", Probe: bundle.Probe{DeadlineSeconds: 60}}, {Name: "kubelet", Probe: bundle.Probe{DeadlineSeconds: 100}}, {Name: bundle.AgentService}}
	planned := protocol.Event{Event: protocol.EventPlan, Total: 12}
	action := func(done int, verb protocol.Verb, service string) protocol.Event {
		return protocol.Event{Event: protocol.EventAction, Done: done, Total: 12, Action: &protocol.Action{Verb: verb, Entry: bundle.KindService.ID(service)}}
	}
	for _, c := range []struct {
		name   string
		isNode bool
		events []protocol.Event
		// want is the message, empty where the host was not changed or the run has ended.
		want    string
		seconds int64
	}{
		{"before it has a plan", true, []protocol.Event{{Event: protocol.EventReceived}}, "", 0},
		{"nothing differs", true, []protocol.Event{{Event: protocol.EventPlan}}, "", 0},
		{"services are stopped", true, []protocol.Event{planned, action(4, protocol.VerbStop, "kubelet"), action(5, protocol.VerbStop, "containerd")},
			"interrupted after 5 of 12 actions; containerd, kubelet are stopped; the node agent takes up the run, and finishes it or rolls it back within about 7m", 410},
		{"one of them runs again", true, []protocol.Event{planned, action(4, protocol.VerbStop, "kubelet"), action(5, protocol.VerbStop, "containerd"), action(11, protocol.VerbStart, "containerd")},
			"interrupted after 11 of 12 actions; kubelet is stopped; the node agent takes up the run, and finishes it or rolls it back within about 7m", 410},
		{"no action is done yet", true, []protocol.Event{planned}, "interrupted after 0 of 12 actions; the node agent takes up the run, and finishes it or rolls it back within about 7m", 410},
		{"it waits for its confirmation", true, []protocol.Event{planned, action(12, protocol.VerbStart, "kubelet"), {Event: protocol.EventConfirm}},
			"interrupted before the change was confirmed; the node agent rolls it back within about 7m", 410},
		{"it is rolled back", true, []protocol.Event{planned, action(4, protocol.VerbStop, "kubelet"), {Event: protocol.EventRollback}},
			"interrupted while the host is rolled back; kubelet is stopped; the node agent rolls it back within about 7m", 410},
		{"the agent is stopped", true, []protocol.Event{planned, action(4, protocol.VerbStop, bundle.AgentService)},
			"interrupted after 4 of 12 actions; windows-instance-config-daemon is stopped; no node agent runs there, so it stays so until you apply again", 0},
		{"the host is no node yet", false, []protocol.Event{planned, action(4, protocol.VerbPut, "kubelet")}, "interrupted after 4 of 12 actions; no node agent runs there, so it stays so until you apply again", 0},
		{"its agent has begun", false, []protocol.Event{planned, action(9, protocol.VerbStart, bundle.AgentService)},
			"interrupted after 9 of 12 actions; the node agent takes up the run, and finishes it or rolls it back within about 7m", 410},
		{"the run has ended", true, []protocol.Event{planned, {Event: protocol.EventResult, Result: protocol.ResultApplied}}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := remote.Target{User: "u", Address: "192.0.2.1:22"}
			h := &host{target: target, err: &remote.InterruptedError{Target: target, Command: "apply", Err: context.Canceled}}
			r := newResults()
			note := r.begin(target, newUnfinished(services, c.isNode))
			for _, e := range c.events {
				note(e)
			}
			middle := r.explainInterrupted([]*host{h}, context.Canceled)
			var got *unfinishedError
			if !errors.As(h.err, &got) {
				if c.want != "" || middle != 0 {
					t.Errorf("%d in the middle, %v", middle, h.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got.Error()); diff != "" || middle != 1 || got.ResumesWithinSeconds != c.seconds {
				t.Errorf("%d in the middle, %d seconds (-want +got):\n%s", middle, got.ResumesWithinSeconds, diff)
			}
			if fix := remote.SuggestFix(h.err); fix != "to end it sooner, apply again: the same inputs finish it, the earlier ones undo it" {
				t.Errorf("fix: %s", fix)
			}
		})
	}
}

// TestAHostThatWasNotReachedIsUnchanged: its connection is no news, and what refused it is.
func TestAHostThatWasNotReachedIsUnchanged(t *testing.T) {
	target := remote.Target{User: "u", Address: "192.0.2.1:22"}
	interrupted, refused := &host{target: target, err: context.Canceled}, &host{target: target, err: &remote.AuthError{Target: target, Err: errors.New("no key")}}
	if middle := newResults().explainInterrupted([]*host{interrupted, refused}, context.Canceled); middle != 0 || !errors.Is(interrupted.err, errUnchanged) || errors.Is(refused.err, errUnchanged) {
		t.Errorf("%d in the middle, %v, %v", middle, interrupted.err, refused.err)
	}
}
