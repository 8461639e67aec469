package agent

import (
	"context"

	"wmco/applier/protocol"
)

// logApplierEvent logs what happened. A comparison in which nothing differs is silent.
func (a *Agent) logApplierEvent(e protocol.Event) {
	switch e.Event {
	case protocol.EventAction:
		if a.reports {
			a.found = append(a.found, *e.Action)
			return
		}
		a.Log.Info("action", "verb", e.Action.Verb, "entry", e.Action.Entry, "reason", e.Action.Reason)
	case protocol.EventRollback:
		a.Log.Error("rolling back", "reason", e.Message)
	case protocol.EventNote:
		a.Log.Warn(e.Message)
	case protocol.EventResult:
		if e.Result == protocol.ResultApplied || e.Result == protocol.ResultReboot || e.Result == protocol.ResultRolledBack {
			a.Log.Info("result", "result", e.Result, "written", e.Written, "restarted", e.Restarted)
		}
	case protocol.EventPlan:
		a.planned = e.Impact
	case protocol.EventReceived, protocol.EventFetching, protocol.EventProbe, protocol.EventConfirm:
	}
}

// sendEventToNode sends an event. One that gets lost is in the log and in the report.
func (a *Agent) sendEventToNode(ctx context.Context, e Event) {
	if a.Cluster == nil {
		return
	}
	e.Time = a.Engine.Clock.Now()
	if err := a.Cluster.Event(ctx, e); err != nil && ctx.Err() == nil {
		a.Log.Warn("sending an event", "reason", e.Reason, "error", err)
	}
}
