package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	bars "github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/cli"
)

// results are the last events of hosts, by target.
type results struct {
	mu     sync.Mutex
	events map[remote.Target]protocol.Event
	// unfinished is how far the run on each host has come.
	unfinished map[remote.Target]*unfinished
}

func newResults() *results {
	return &results{events: map[remote.Target]protocol.Event{}, unfinished: map[remote.Target]*unfinished{}}
}

// begin returns what notes how far the run on a host has come.
func (r *results) begin(t remote.Target, u *unfinished) func(protocol.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfinished[t] = u
	return func(e protocol.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		u.noteEvent(e)
	}
}

func (r *results) put(t remote.Target, e protocol.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[t] = e
}

// progress shows what happens on many hosts: bars on a terminal, lines in a log, events as JSON for programs.
type progress struct {
	mu     sync.Mutex
	json   io.Writer
	lines  io.Writer
	bars   bars.Writer
	byHost map[remote.Target]*bars.Tracker
	// sends and waits are of hosts that are worked on.
	sends map[remote.Target]*sending
	waits map[remote.Target]*remote.Awaited
	now   func() time.Time
	// after are lines to print after the bars: a bar has no room for a reason.
	after []string
	ended chan struct{}
}

// hostEvent is an event with its host.
type hostEvent struct {
	Host string `json:"host"`
	protocol.Event
}

func newProgress(a app, f cli.Format, hosts []*host) *progress {
	s := &progress{lines: a.stderr, byHost: map[remote.Target]*bars.Tracker{}, ended: make(chan struct{}),
		sends: map[remote.Target]*sending{}, waits: map[remote.Target]*remote.Awaited{}, now: a.now}
	close(s.ended)
	if f == cli.JSON {
		s.json = a.stdout
		return s
	}
	file, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.bars = bars.NewWriter()
	s.bars.SetOutputWriter(a.stderr)
	s.bars.SetUpdateFrequency(200 * time.Millisecond)
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.bars.SetTerminalWidth(width) // the default asks stdout, which may be no terminal
	}
	s.bars.SetTrackerLength(6)
	style := s.bars.Style()
	style.Visibility.ETA, style.Visibility.Speed, style.Visibility.Percentage, style.Visibility.Value = false, false, false, false // what the host does has the room
	style.Options.TimeDonePrecision, style.Options.TimeInProgressPrecision, style.Options.TimeOverallPrecision = time.Second, time.Second, time.Second
	for _, h := range hosts {
		s.byHost[h.target] = &bars.Tracker{Message: cli.Plain(h.target.String() + "  connecting"), AutoStopDisabled: true}
		s.bars.AppendTracker(s.byHost[h.target])
	}
	s.ended = make(chan struct{})
	go func() {
		s.bars.Render()
		close(s.ended)
	}()
	go s.showEachSecond()
	return s
}

// showEachSecond shows the bytes sent and the current wait once a second.
func (s *progress) showEachSecond() {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-every.C:
			s.showWaiting()
		}
	}
}

func (s *progress) showWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, bar := range s.byHost {
		if bar.IsDone() || s.sends[t] == nil {
			continue
		}
		if text := cmp.Or(s.waits[t].WaitingText(s.now()), s.sends[t].sendingText()); text != "" {
			bar.UpdateMessage(cli.Plain(t.String() + "  " + text))
		}
	}
}

// beginHost is called before a host gets a bundle with these services, and returns the source of its contents.
func (s *progress) beginHost(t remote.Target, services []bundle.Service, contents archive.Source) archive.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits[t], s.sends[t] = remote.NewAwaited(services), &sending{Source: contents}
	return s.sends[t]
}

// untilConfirmed is how many actions there are left when all are done: services have to become healthy, and the run to
// be confirmed. A bar is full at its end.
const untilConfirmed = 1

// event shows one event of a host.
func (s *progress) event(t remote.Target, e protocol.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.json != nil:
		_ = cli.WriteJSONLine(s.json, hostEvent{t.String(), e}) // the exit status comes from the results
	case s.bars != nil:
		s.advance(s.byHost[t], t, e)
	default:
		if text := eventText(e); text != "" {
			cli.Printf(s.lines, "%s: %s\n", t, text)
		}
	}
}

func (s *progress) advance(bar *bars.Tracker, t remote.Target, e protocol.Event) {
	if w := s.waits[t]; w != nil {
		w.NoteEvent(e, s.now())
	}
	if e.Total > 0 {
		bar.UpdateTotal(int64(e.Total) + untilConfirmed)
		bar.SetValue(int64(e.Done))
	}
	text := eventText(e)
	if e.Event == protocol.EventResult {
		text = string(e.Result)
		delete(s.sends, t) // or showWaiting would replace the result before done is called
	}
	if waits := s.waits[t].WaitingText(s.now()); waits != "" {
		text = waits
	}
	if text != "" {
		bar.UpdateMessage(cli.Plain(t.String() + "  " + text))
	}
	if e.Message != "" && e.Event == protocol.EventNote { // the result is printed after all bars
		s.after = append(s.after, fmt.Sprintf("%s: %s", t, e.Message))
	}
}

// note shows something that is no event of the host.
func (s *progress) note(t remote.Target, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars != nil {
		s.after = append(s.after, fmt.Sprintf("%s: %s", t, text))
		return
	}
	cli.Printf(s.lines, "%s: %s\n", t, text)
}

// done ends the bar of a host, with its exit status.
func (s *progress) done(t remote.Target, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bar := s.byHost[t]
	switch {
	case bar == nil:
	case status != cli.ExitDone:
		bar.MarkAsErrored()
	default:
		bar.MarkAsDone()
	}
}

// end waits until everything is printed.
func (s *progress) end() {
	for {
		if s.bars != nil {
			s.bars.Stop() // which does nothing until Render has begun
		}
		select {
		case <-s.ended:
			s.printAfter()
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *progress) printAfter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.after {
		cli.Printf(s.lines, "%s\n", line)
	}
	s.after = nil
}

// eventText returns an event as one line for people; empty for what only programs need.
func eventText(e protocol.Event) string {
	switch e.Event {
	case protocol.EventPlan:
		return "plan: " + planText(e.Total, e.Impact)
	case protocol.EventAction:
		if e.Action == nil {
			return ""
		}
		return fmt.Sprintf("%d/%d %s %s", e.Done, e.Total, e.Action.Verb, e.Action.Entry)
	case protocol.EventProbe:
		return e.Service + ": " + e.Message
	case protocol.EventConfirm:
		return "all services are healthy, reconnecting to confirm"
	case protocol.EventNote:
		return e.Message
	case protocol.EventRollback:
		return "rolling back: " + e.Message
	case protocol.EventResult:
		return cmp.Or(e.Message, string(e.Result))
	case protocol.EventReceived, protocol.EventFetching:
		return ""
	}
	return ""
}

// failureJSON is a host without an answer.
type failureJSON struct {
	Host  string `json:"host"`
	Error string `json:"error"`
	Fix   string `json:"fix,omitempty"`
	// Unfinished is of a host that is in the middle of a change.
	Unfinished *unfinished `json:"unfinished,omitempty"`
}

// printFailure prints why a host has no answer, and what to do. It prints nothing for other hosts.
func printFailure(a app, f cli.Format, h *host) {
	switch {
	case h.err == nil:
	case f == cli.JSON:
		failure := failureJSON{Host: h.target.String(), Error: h.err.Error(), Fix: remote.SuggestFix(h.err)}
		if middle := (*unfinishedError)(nil); errors.As(h.err, &middle) {
			failure.Unfinished = &middle.unfinished
		}
		_ = cli.WriteJSONLine(a.stdout, failure) // as for events
	default:
		cli.Printf(a.stderr, "%s: %v\n", h.target, h.err)
		if fix := remote.SuggestFix(h.err); fix != "" {
			cli.Printf(a.stderr, "  fix: %s\n", fix)
		}
	}
}
