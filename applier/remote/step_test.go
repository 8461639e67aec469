package remote

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// TestWhatIsCopiedIsSaidInWholeUnits, and at the end that the host is not done.
func TestWhatIsCopiedIsSaidInWholeUnits(t *testing.T) {
	var said []string
	ctx := WithSteps(t.Context(), func(s Step) { said = append(said, s.Text) })
	c := newCopying(ctx, "executables", 0, 5<<19)
	for range 10 {
		if _, err := c.Write(make([]byte, 1<<18)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"copying executables: 0 of 3 MiB", "copying executables: 1 of 3 MiB", "copying executables: 2 of 3 MiB", "the host checks executables that it got"}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
	newCopying(context.Background(), "files", 0, 10).noteText() // who does not ask is told nothing
}

// TestAnUploadSaysHowFarItIs, from where the one before was interrupted.
func TestAnUploadSaysHowFarItIs(t *testing.T) {
	var from []int64
	copied := 0
	u := uploadTo(fakeFiles{leftover: {Data: []byte("ag")}}, func() {})
	u.copying = func(at int64) io.Writer {
		from = append(from, at)
		return counter{&copied}
	}
	if done, _, err := u.resumeUpload(); !done || err != nil {
		t.Fatal(done, err)
	}
	if want := len(agentText); len(from) != 1 || int(from[0])+copied != want {
		t.Errorf("from %d, %d bytes, want %d at the end", from, copied, want)
	}
}

type counter struct{ sum *int }

func (c counter) Write(p []byte) (int, error) {
	*c.sum += len(p)
	return len(p), nil
}

// TestARunSaysWhatItDoes, and after a rollback has begun nothing else.
func TestARunSaysWhatItDoes(t *testing.T) {
	r := NewRunSteps([]bundle.Service{{Name: "kubelet", Probe: bundle.Probe{DeadlineSeconds: 120}}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	action := func(verb protocol.Verb, entry bundle.EntryID, done int) protocol.Event {
		return protocol.Event{Event: protocol.EventAction, Action: &protocol.Action{Verb: verb, Entry: entry}, Done: done, Total: 2}
	}
	if text := r.StepText(now); text != "" {
		t.Errorf("before: %q", text)
	}
	for _, step := range []struct {
		event protocol.Event
		want  string
	}{
		{protocol.Event{Event: protocol.EventReceived}, ""},
		{protocol.Event{Event: protocol.EventPlan, Total: 2}, "applying"},
		{action(protocol.VerbWrite, "file C:\\k\\a", 1), "applying: 1 of 2, write file C:\\k\\a"},
		{action(protocol.VerbStart, bundle.KindService.ID("kubelet"), 2), "waiting for kubelet: 10s of 2m"},
		{protocol.Event{Event: protocol.EventRollback, Message: "the time is up"}, "rolling back: the time is up"},
		{action(protocol.VerbWrite, "file C:\\k\\a", 1), "rolling back: the time is up"},
		{action(protocol.VerbStart, bundle.KindService.ID("kubelet"), 2), "rolling back: waiting for kubelet: 10s of 2m"},
		{protocol.Event{Event: protocol.EventProbe, Service: "kubelet"}, "rolling back: the time is up"},
		{protocol.Event{Event: protocol.EventResult}, ""},
	} {
		r.NoteEvent(step.event, now)
		now = now.Add(10 * time.Second)
		if got := r.StepText(now); got != step.want {
			t.Errorf("after %s: %q, want %q", step.event.Event, got, step.want)
		}
	}
}
