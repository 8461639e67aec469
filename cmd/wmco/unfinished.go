package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/cli"
)

// unfinished is how far a run on a host has come, by its events.
type unfinished struct {
	// Done of Total actions are done; Total is 0 before the plan is made, which is before anything is changed.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Stopped are services that were stopped and not started again.
	Stopped []string `json:"stopped,omitempty"`
	// ResumesWithinSeconds is how long it takes at most until the node agent has ended the run; 0 where no agent runs
	// that could.
	ResumesWithinSeconds int64 `json:"resumesWithinSeconds,omitempty"`

	stopped map[string]bool
	// confirming and rolling are the ends of a run: all services are healthy, or the host is being rolled back.
	confirming, rolling, ended bool
	// agent reports whether a node agent runs on the host as a service; longest is the longest time that a service may
	// take to become healthy.
	agent   bool
	longest time.Duration
}

// newUnfinished is for a host that gets a bundle with these services. IsNode reports whether it is a Node already,
// whose agent runs.
func newUnfinished(services []bundle.Service, isNode bool) *unfinished {
	u := &unfinished{stopped: map[string]bool{}, agent: isNode}
	for _, s := range services {
		u.longest = max(u.longest, time.Duration(s.Probe.DeadlineSeconds)*time.Second)
	}
	return u
}

func (u *unfinished) noteEvent(e protocol.Event) {
	switch e.Event {
	case protocol.EventPlan:
		u.Total = e.Total
	case protocol.EventAction:
		u.noteAction(e)
	case protocol.EventConfirm:
		u.confirming = true
	case protocol.EventRollback:
		u.rolling, u.confirming = true, false
	case protocol.EventResult:
		u.ended = true
	case protocol.EventReceived, protocol.EventFetching, protocol.EventProbe, protocol.EventNote:
	}
}

func (u *unfinished) noteAction(e protocol.Event) {
	u.Done = max(u.Done, e.Done)
	name, stops := e.ServiceAction()
	starts := e.Action != nil && e.Action.Verb == protocol.VerbStart
	switch {
	case name == "":
		return
	case stops:
		u.stopped[name] = true
	case starts:
		delete(u.stopped, name)
	}
	if name == bundle.AgentService && (stops || starts) {
		u.agent = starts
	}
	u.Stopped = slices.Sorted(maps.Keys(u.stopped))
}

// isUnderWay reports whether the host is between two bundles.
func (u *unfinished) isUnderWay() bool { return u.Total > 0 && !u.ended }

// resumesWithin returns how long it takes at most until the node agent has ended the run. It looks for one at each
// comparison, and gives services their time, once for the bundle and, where it is rolled back, once more for what ran
// before.
func (u *unfinished) resumesWithin() time.Duration {
	if !u.agent {
		return 0
	}
	return protocol.ComparisonInterval + u.longest + bundle.DefaultSettleSeconds*time.Second
}

// unfinishedError is of a host on which the run goes on without the command that was interrupted.
type unfinishedError struct {
	unfinished
	err error
}

func (e *unfinishedError) Error() string {
	text := fmt.Sprintf("interrupted after %d of %s", e.Done, bundle.Count(e.Total, "action"))
	switch {
	case e.rolling:
		text = "interrupted while the host is rolled back"
	case e.confirming:
		text = "interrupted before the change was confirmed"
	}
	if len(e.Stopped) > 0 {
		verb := "are"
		if len(e.Stopped) == 1 {
			verb = "is"
		}
		text += fmt.Sprintf("; %s %s stopped", bundle.JoinFirst(e.Stopped, 3, ", ", bundle.AndOthers), verb)
	}
	within := (e.resumesWithin() + time.Minute - 1).Truncate(time.Minute)
	switch {
	case within == 0:
		return text + "; no node agent runs there, so it stays so until you apply again"
	case e.confirming, e.rolling:
		return text + fmt.Sprintf("; the node agent rolls it back within about %s", formatAge(within))
	}
	return text + fmt.Sprintf(
		"; the node agent takes up the run, and finishes it or rolls it back within about %s", formatAge(within),
	)
}

// Unwrap implements errors.
func (e *unfinishedError) Unwrap() error { return e.err }

// Fix returns what to do.
func (e *unfinishedError) Fix() string {
	return "to end it sooner, apply again: the same inputs finish it, the earlier ones undo it"
}

// errUnchanged is of a host that was not changed before the command was interrupted.
var errUnchanged = errors.New("interrupted before anything was changed")

// explainInterrupted replaces the errors of hosts after an interruption by what it means for them, and leaves those of
// another cause. It returns how many hosts are in the middle of a change.
func (r *results) explainInterrupted(hosts []*host, cause error) (middle int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range hosts {
		u := r.unfinished[h.target]
		switch {
		case h.err == nil:
		case u != nil && u.isUnderWay():
			u.ResumesWithinSeconds = int64(u.resumesWithin() / time.Second)
			h.err = &cli.ExitError{Status: cli.ExitPartial, Err: &unfinishedError{*u, h.err}}
			middle++
		case (u == nil || !u.ended) && (errors.Is(h.err, cause) || errors.Is(h.err, context.Canceled)):
			h.err = &cli.ExitError{Status: cli.ExitInterrupted, Err: errUnchanged}
		}
	}
	return middle
}

// hasEnded reports whether the run on any host has ended.
func (r *results) hasEnded() bool {
	for _, u := range r.unfinished {
		if u.ended {
			return true
		}
	}
	return false
}
