package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// TestAHostSaysWhatItWaitsFor goes through the events of a run, ten seconds apart.
func TestAHostSaysWhatItWaitsFor(t *testing.T) {
	w := newAwaited([]bundle.Service{{Name: "kubelet", Probe: bundle.Probe{DeadlineSeconds: 120}}, {Name: "containerd", Probe: bundle.Probe{DeadlineSeconds: 60}}})
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
		{applier.Event{Event: applier.EventRollback, Message: "kubelet"}, ""},
		{start("kubelet", 3), "waiting for kubelet: 0s of 2m"},
		{applier.Event{Event: applier.EventProbe, Service: "kubelet", Message: "healthy"}, ""},
	} {
		w.noteEvent(step.event, now)
		if got := w.waitingText(now); got != step.want {
			t.Errorf("after %s: %q, want %q", step.event.Event, got, step.want)
		}
		now = now.Add(10 * time.Second)
	}
	if got := (*awaited)(nil).waitingText(now); got != "" {
		t.Errorf("a host without a bundle: %q", got)
	}
}

// someContent is a source of one content.
type someContent struct{ data []byte }

func (someContent) Contents() []archive.Content { return nil }

func (s someContent) Open(sha256 string) (io.ReadCloser, error) {
	if sha256 == "gone" {
		return nil, errors.New("gone")
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(s.data), io.NopCloser(nil)}, nil
}

func TestWhatIsSentIsCounted(t *testing.T) {
	s := &sending{Source: someContent{make([]byte, 20<<10)}}
	if _, err := s.Open("gone"); err == nil {
		t.Error("a content that does not exist is opened")
	}
	r, err := s.Open("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.(io.Seeker); !ok {
		t.Error("parts cannot be skipped any more")
	}
	if _, err := r.(io.Seeker).Seek(8<<10, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 12<<10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if first, second := s.sendingText(), s.sendingText(); first != "sending 12 KiB" || second != "" {
		t.Errorf("%q, then %q", first, second)
	}
}
