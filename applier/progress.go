package applier

import (
	"errors"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// progress is how far a run has come. It sends the events of the run, and the outcome is made from it.
type progress struct {
	clock Clock
	// send receives the events; nil drops them.
	send func(protocol.Event)

	total, done, written, restarted int
	result                          protocol.Result
	// pending are the settings that take effect with the next boot.
	pending     []bundle.EntryID
	restartSelf bool
	// resumed reports whether another process began the run.
	resumed bool
	// log is the end of the log of the service because of which the run is rolled back.
	log bundle.LogTail
	// unknown are the kinds of settings that could not be read, and stay as they are.
	unknown []bundle.UnknownFact
}

func (p *progress) sendEvent(e protocol.Event) {
	e.Schema, e.Time = protocol.Schema, p.clock.Now()
	if p.send != nil {
		p.send(e)
	}
}

func (p *progress) addNote(message string) {
	p.sendEvent(protocol.Event{Event: protocol.EventNote, Message: message})
}

// showPlan sends the plan for a bundle, after the notes about the host.
func (p *progress) showPlan(steps plan.Plan, d bundle.Digest, notes []string) {
	p.total = len(steps.Steps)
	for _, n := range notes {
		p.addNote(n)
	}
	p.sendEvent(protocol.Event{Event: protocol.EventPlan, Bundle: d, Total: p.total, Impact: steps.HighestImpact(),
		Message: steps.SummaryLine()})
}

// countAction counts an action that is done.
func (p *progress) countAction(a protocol.Action) {
	p.done++
	p.sendEvent(protocol.Event{Event: protocol.EventAction, Action: &a, Done: p.done, Total: p.total})
}

// noteUnknown notes a setting that could not be read, once for each kind.
func (p *progress) noteUnknown(id bundle.EntryID, why string) {
	kind, _, _ := strings.Cut(string(id), " ")
	u := bundle.UnknownFact{Part: bundle.FactPart(kind), Error: why}
	if !slices.Contains(p.unknown, u) {
		p.unknown = append(p.unknown, u)
		p.addNote(string(id) + " stays as it is: " + why)
	}
}

// endRun returns the outcome of a run for a bundle, and sends its last event. Records are nil where the run has not come to
// load them.
func (p *progress) endRun(d bundle.Digest, r *records.Records, err error) (Outcome, error) {
	applying := r != nil && r.Applying
	event := protocol.Event{
		Event: protocol.EventResult, Bundle: d, Result: p.result, Done: p.done, Total: p.total, Written: p.written, Restarted: p.restarted,
		RebootPending: p.pending, Log: p.log,
	}
	var refused *RefusedError
	var back *RolledBackError
	var partial *PartialError
	if errors.As(err, &refused) {
		event.Missing = refused.Missing
	}
	if locked := (*LockedError)(nil); errors.As(err, &locked) && !applying {
		event.LockedBy = locked.Owner
	}
	switch {
	case err == nil:
	case errors.As(err, &back):
		event.Result = protocol.ResultRolledBack
	case errors.As(err, &partial) || applying:
		event.Result = protocol.ResultPartial
		if partial == nil {
			err = &PartialError{Err: err}
		}
	case isRefusal(err):
		event.Result = protocol.ResultRefused
	default:
		event.Result, err = protocol.ResultPartial, wrapAsFault(err)
	}
	if err != nil {
		event.Message, event.DiskFull = err.Error(), errors.Is(err, ErrDiskFull)
	}
	p.sendEvent(event)
	return Outcome{Event: event, RestartSelf: p.restartSelf, Resumed: p.resumed, Unknown: p.unknown}, err
}
