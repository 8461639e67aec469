package agent

import (
	"context"
	"fmt"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// reporter writes what the agent says, if it has changed or is old.
type reporter struct {
	facts *bundle.Facts
	// sent is the last report, state its State, changedAt when the condition last became true or false.
	sent      string
	state     published.State
	changedAt time.Time
	// heartbeat is when the next one is due although nothing has changed.
	heartbeat time.Time
}

// observe asks for the facts of the host, from which its node layer is rendered.
func (r *reporter) observe(ctx context.Context, h applier.Host) {
	if facts, err := h.Facts(ctx); err == nil {
		r.facts = &facts
	}
}

// sendReport writes the report. What cannot be sent is sent with the next step.
func (a *Agent) sendReport(ctx context.Context) {
	r, state := &a.reporter, a.state()
	if a.Cluster == nil || state.State == "" {
		return
	}
	text, err := state.Encode()
	if err != nil {
		a.Log.Error("reporting", "error", err)
		return
	}
	now := a.Engine.Clock.Now()
	if text == r.sent && now.Before(r.heartbeat) {
		return
	}
	changed := r.changedAt
	if changed.IsZero() || (state.State == published.StateApplied) != (r.state == published.StateApplied) {
		changed = now
	}
	s := Status{Text: text, State: state.State, Message: conditionText(state), Time: now, Changed: changed}
	if err := a.Cluster.Report(ctx, s); err != nil {
		if ctx.Err() == nil {
			a.Log.Warn("reporting", "error", err)
		}
		return
	}
	r.sent, r.state, r.changedAt = text, state.State, changed
	r.heartbeat = now.Add(a.Options.Jitter(heartbeatInterval))
}

// conditionText is what people read in the condition.
func conditionText(r published.Report) string {
	switch {
	case r.Message != "":
		return r.Message
	case r.State == published.StateUnpublished:
		return "no bundle is published for this node yet"
	case r.State == published.StateApplied && len(r.RebootPending) > 0:
		return fmt.Sprintf("bundle %s is applied; %s with the next boot", r.Desired.Short(), takeEffect(len(r.RebootPending)))
	case r.State == published.StateApplied:
		return fmt.Sprintf("bundle %s is applied", r.Desired.Short())
	case r.State == published.StateRebootPending:
		return fmt.Sprintf("the rest of bundle %s waits for the next boot", r.Desired.Short())
	}
	return fmt.Sprintf("bundle %s is being applied", r.Desired.Short())
}

func takeEffect(n int) string {
	if n == 1 {
		return "1 entry takes effect"
	}
	return fmt.Sprintf("%d entries take effect", n)
}
