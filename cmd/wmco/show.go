package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"wmco/applier"
	"wmco/applier/remote"
)

// results are how machines ended, by target.
type results struct {
	mu     sync.Mutex
	events map[remote.Target]applier.Event
}

func (r *results) put(t remote.Target, e applier.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[t] = e
}

// show tells what happens on many machines: bars on a terminal, lines in a log, events as JSON for programs.
type show struct {
	mu     sync.Mutex
	json   *json.Encoder
	lines  io.Writer
	bars   progress.Writer
	byHost map[remote.Target]*progress.Tracker
	// after are lines for when the bars are gone: a bar has no room for a reason.
	after []string
	ended chan struct{}
}

// hostEvent is an event with the machine that it is of.
type hostEvent struct {
	Host string `json:"host"`
	applier.Event
}

func newShow(a app, f format, members []*member) *show {
	s := &show{lines: a.stderr, byHost: map[remote.Target]*progress.Tracker{}, ended: make(chan struct{})}
	close(s.ended)
	if f == formatJSON {
		s.json = json.NewEncoder(a.stdout)
		s.json.SetEscapeHTML(false)
		return s
	}
	file, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.bars = progress.NewWriter()
	s.bars.SetOutputWriter(a.stderr)
	s.bars.SetUpdateFrequency(200 * time.Millisecond)
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.bars.SetTerminalWidth(width) // it would ask stdout, which may be none
	}
	s.bars.Style().Visibility.ETA, s.bars.Style().Visibility.Speed = false, false
	for _, m := range members {
		s.byHost[m.target] = &progress.Tracker{Message: m.target.String() + "  reaching it", AutoStopDisabled: true}
		s.bars.AppendTracker(s.byHost[m.target])
	}
	s.ended = make(chan struct{})
	go func() {
		s.bars.Render()
		close(s.ended)
	}()
	return s
}

// event tells one event of a machine.
func (s *show) event(t remote.Target, e applier.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.json != nil:
		_ = s.json.Encode(hostEvent{t.String(), e}) // the summary tells what became of stdout
	case s.bars != nil:
		s.advance(s.byHost[t], t, e)
	default:
		if text := eventText(e); text != "" {
			fmt.Fprintf(s.lines, "%s: %s\n", t, text)
		}
	}
}

func (s *show) advance(bar *progress.Tracker, t remote.Target, e applier.Event) {
	if e.Total > 0 {
		bar.UpdateTotal(int64(e.Total))
		bar.SetValue(int64(e.Done))
	}
	text := eventText(e)
	if e.Event == applier.EventResult {
		text = string(e.Result)
	}
	if text != "" {
		bar.UpdateMessage(t.String() + "  " + text)
	}
	if e.Message != "" && e.Event == applier.EventNote { // the end is told after all bars anyway
		s.after = append(s.after, fmt.Sprintf("%s: %s", t, e.Message))
	}
}

// note tells something that is no event of the machine.
func (s *show) note(t remote.Target, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars != nil {
		s.after = append(s.after, fmt.Sprintf("%s: %s", t, text))
		return
	}
	fmt.Fprintf(s.lines, "%s: %s\n", t, text)
}

// done ends the bar of a machine, which ended with the exit status.
func (s *show) done(t remote.Target, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bar := s.byHost[t]
	switch {
	case bar == nil:
	case status != exitDone:
		bar.MarkAsErrored()
	default:
		bar.MarkAsDone()
	}
}

// end waits until everything is on the terminal.
func (s *show) end() {
	for {
		if s.bars != nil {
			s.bars.Stop() // which does nothing as long as Render has not begun
		}
		select {
		case <-s.ended:
			s.tellAfter()
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *show) tellAfter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.after {
		fmt.Fprintln(s.lines, line)
	}
	s.after = nil
}

// eventText is an event for people, in one line; nothing for what only programs need.
func eventText(e applier.Event) string {
	switch e.Event {
	case applier.EventPlan:
		return fmt.Sprintf("plan: %d actions, impact %s", e.Total, e.Impact)
	case applier.EventAction:
		if e.Action == nil {
			return ""
		}
		return fmt.Sprintf("%d/%d %s %s", e.Done, e.Total, e.Action.Verb, e.Action.Entry)
	case applier.EventProbe:
		return e.Service + ": " + e.Message
	case applier.EventConfirm:
		return "everything is healthy, reaching it anew"
	case applier.EventNote:
		return e.Message
	case applier.EventRollback:
		return "putting everything back: " + e.Message
	case applier.EventResult:
		return firstNonEmpty(e.Message, string(e.Result))
	case applier.EventReceived:
		return ""
	}
	return ""
}

// failureJSON is a machine without an answer.
type failureJSON struct {
	Host  string `json:"host"`
	Error string `json:"error"`
	Fix   string `json:"fix,omitempty"`
}

// printFailure tells of a machine that something kept us from, if it is one, and what to do about it.
func printFailure(a app, f format, m *member) {
	switch {
	case m.err == nil:
	case f == formatJSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(failureJSON{m.target.String(), m.err.Error(), remote.Fix(m.err)}) // as for events
	default:
		fmt.Fprintf(a.stderr, "%s: %v\n", m.target, m.err)
		if fix := remote.Fix(m.err); fix != "" {
			fmt.Fprintf(a.stderr, "  fix: %s\n", fix)
		}
	}
}
