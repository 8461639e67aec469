package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Step is the current step of a host, for people. The text may hold text of the host.
type Step struct {
	Text string
	// Connects is true until the host has answered: it may do so never.
	Connects bool
}

type stepKey struct{}

// WithSteps returns a context whose calls of this package call note whenever a host has got further with what takes
// long. It is called by any goroutine, and must not block.
func WithSteps(ctx context.Context, note func(Step)) context.Context {
	return context.WithValue(ctx, stepKey{}, note)
}

// NoteStep tells who has made the context.
func NoteStep(ctx context.Context, s Step) {
	if note, ok := ctx.Value(stepKey{}).(func(Step)); ok {
		note(s)
	}
}

// copying notes how many bytes of something are written.
type copying struct {
	note        func(Step)
	what        string
	done, total int64
	said        string
}

// newCopying begins the copying.
func newCopying(ctx context.Context, what string, done, total int64) *copying {
	c := &copying{note: func(s Step) { NoteStep(ctx, s) }, what: what, done: done, total: total}
	c.noteText()
	return c
}

// Write implements io.Writer.
func (c *copying) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	c.noteText()
	return len(p), nil
}

func (c *copying) noteText() {
	text := "copying " + c.what + ": " + describeBytes(c.done, c.total)
	if c.done >= c.total {
		text = "the host checks " + c.what + " that it got" // which may take longer than the copying
	}
	if text != c.said {
		c.said = text
		c.note(Step{Text: text})
	}
}

// describeBytes returns how many bytes of all there are, in whole units.
func describeBytes(done, total int64) string {
	unit, size := "KiB", int64(1<<10)
	if total >= 1<<20 {
		unit, size = "MiB", 1<<20
	}
	return fmt.Sprintf("%d of %d %s", done/size, (total+size-1)/size, unit)
}

// missingBytes returns how many bytes of contents a request sends, and what to call them.
func missingBytes(r archive.Request) (sum int64, what string) {
	what = "files"
	executables := r.Manifest.PayloadDigests()
	for _, c := range r.Contents() {
		have, ok := r.Missing[c.Digest]
		if !ok {
			continue
		}
		if executables[c.Digest] {
			what = "executables"
		}
		for i := range c.Parts() {
			if !slices.Contains(have, i+1) {
				sum += c.PartSize(i + 1)
			}
		}
	}
	return sum, what
}

// RunSteps are what a host does while it applies a bundle. It may be used by many goroutines at once.
type RunSteps struct {
	mu      sync.Mutex
	awaited *Awaited
	text    string
	// rolling reports whether the host is rolled back.
	rolling bool
}

// NewRunSteps is for a host that gets a bundle with these services.
func NewRunSteps(services []bundle.Service) *RunSteps {
	return &RunSteps{awaited: NewAwaited(services)}
}

// NoteEvent notes an event at the time that it arrived.
func (r *RunSteps) NoteEvent(e protocol.Event, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited.NoteEvent(e, now)
	switch e.Event {
	case protocol.EventPlan:
		r.text = "applying"
	case protocol.EventAction:
		if e.Action != nil && !r.rolling {
			r.text = fmt.Sprintf("applying: %d of %d, %s %s", e.Done, e.Total, e.Action.Verb, e.Action.Entry)
		}
	case protocol.EventConfirm:
		r.text = "applying: all services are healthy; the host waits for another connection"
	case protocol.EventRollback:
		r.rolling, r.text = true, "rolling back: "+e.Message
	case protocol.EventResult:
		r.text = ""
	case protocol.EventProbe, protocol.EventNote, protocol.EventReceived, protocol.EventFetching:
	}
}

// StepText is what the host does; empty where that is not known.
func (r *RunSteps) StepText(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.awaited.WaitingText(now)
	switch {
	case waits == "":
		return r.text
	case r.rolling:
		return "rolling back: " + waits
	}
	return waits
}
