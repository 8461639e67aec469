package hosts

import (
	"context"
	"sync"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

// A run on a host waits for its confirmation, and rolls the host back without one. The operator gives it when the host
// answers over a new connection, and the Confirmation of the wish agrees:
//
//	apply --action: a service has stopped, was started--> Confirmation.NoteEvent
//	      --confirm: all services are healthy----------> Confirmation.AwaitConfirmation --nil--> confirm, over a new connection
//	                                                     `-- until the run has ended without it: rolled back

// Confirmation is asked whether a change of a host may stay. One is for one run.
type Confirmation interface {
	// NoteManifest is told the manifest, before the run.
	NoteManifest(m bundle.Manifest)
	// NoteEvent is told the actions of the run, in order, each after it was done.
	NoteEvent(ctx context.Context, e protocol.Event)
	// AwaitConfirmation returns nil when the change is confirmed, and when the context ends an error why it
	// is not, without secrets.
	AwaitConfirmation(ctx context.Context) error
}

// resumeWithin is how long an interrupted run is asked about in one call: the host goes on to wait, and the next call
// asks again.
const resumeWithin = 90 * time.Second

// resumeOverNewConnections confirms an interrupted run, as a whole one is confirmed. A run that does not wait yet
// ignores it.
func (h *Hosts) resumeOverNewConnections(ctx context.Context, w Wish, r remote.Request) error {
	agent := h.confirms.AgentFor(w.Target)
	seen, err := agent.Observe(ctx, r)
	if err != nil || seen.Interrupted == "" {
		return err
	}
	if w.Confirmation != nil {
		if seen.Interrupted == r.Manifest.Digest { // of another bundle it is not known what it brings
			w.Confirmation.NoteManifest(r.Manifest)
		}
		limited, stop := context.WithTimeout(ctx, resumeWithin)
		defer stop()
		if err := w.Confirmation.AwaitConfirmation(limited); err != nil {
			return ctx.Err() // the host rolls back if nothing confirms it until its own limit
		}
	}
	return agent.Confirm(ctx, seen.Interrupted)
}

// applyAndConfirm applies a wish, and confirms it. Unconfirmed is why that was not done.
func (h *Hosts) applyAndConfirm(ctx context.Context, w Wish, r remote.Request,
	agent *remote.Agent) (result protocol.Event, unconfirmed string, err error) {
	var confirming sync.WaitGroup
	ctx, ended := context.WithCancel(ctx)
	defer ended()
	o := remote.ApplyOptions{MaxImpact: w.MaxImpact, Reboot: w.Reboot, ConfirmWithin: confirmWithin, Wait: runWait}
	if w.Confirmation != nil {
		o.ConfirmWithin = h.kubeletWithin
		w.Confirmation.NoteManifest(r.Manifest)
	}
	var impact bundle.Impact
	rollsBack := false
	steps := remote.NewRunSteps(servicesOf(r.Manifest))
	go noteSteps(ctx, steps)
	result, err = agent.Apply(ctx, r, o, func(e protocol.Event) {
		h.clocks.noteEventTime(agent.Target().Host(), e)
		steps.NoteEvent(e, time.Now())
		noteStep(ctx, steps)
		if e.Impact != "" {
			impact = e.Impact
		}
		rollsBack = rollsBack || e.Event == protocol.EventRollback
		switch {
		case e.Event == protocol.EventConfirm:
			confirming.Go(func() { unconfirmed = h.confirmRun(ctx, w, r.Manifest.Digest) })
		case e.Event == protocol.EventAction && w.Confirmation != nil && !rollsBack:
			w.Confirmation.NoteEvent(ctx, e)
		}
	})
	ended()
	confirming.Wait()
	result.Impact = impact
	return result, unconfirmed, err
}

// confirmRun confirms a run when its Confirmation does, until the context ends, which is that of the run. It returns
// why not.
func (h *Hosts) confirmRun(ctx context.Context, w Wish, d bundle.Digest) string {
	if w.Confirmation != nil {
		if err := w.Confirmation.AwaitConfirmation(ctx); err != nil {
			return err.Error()
		}
	}
	h.confirms.AgentFor(w.Target).ConfirmReachable(ctx, d, func(error) {})
	return ""
}
