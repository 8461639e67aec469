package agent

import (
	"context"
	"errors"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// booter boots the host where a person asks for it, or the settings for what Windows waits for, and the operator has
// drained the node and signed the request.
type booter struct {
	// done is the request for which the host was booted last; begun is the one for which this process has begun a boot.
	done, begun bundle.Digest
	// failed is why the last attempt did not work.
	failed string
}

// bootCause is why a host boots on request. What is signed does not say which of the two it is; the Events of the turn
// of the node do.
const bootCause = "requested by the annotation " + published.RebootAnnotation + " of its Node, or needed by Windows (setting windowsReboots)"

// recallBoots notes for which request the host was booted last: this process may be the first one since.
func (a *Agent) recallBoots(ctx context.Context) {
	done, err := a.Engine.LastBoot(ctx)
	if err != nil {
		a.Log.Warn("looking for the boot that was asked for last", "error", err)
		return
	}
	a.booter.done = done
}

// bootOnRequest boots the host once for a request. It is the last of a step, so that the agent has reported before.
// Other annotations of the Node count for nothing.
func (a *Agent) bootOnRequest(ctx context.Context, n Node) {
	b, f := &a.booter, &a.follower
	asked := f.desired.Boot
	if n.Paused || n.Desired != f.text || !f.accepted || asked == "" || asked == b.done {
		return
	}
	if f.permittedImpact(a.sinceBoot()) != bundle.ImpactReboot {
		return // the operator has not drained the node, or too long ago
	}
	if b.begun != asked {
		a.Log.Info("booting the host", "request", asked.Short())
		a.sendEventToNode(ctx, Event{Reason: EventBooting, Message: "the host reboots: " + bootCause})
	}
	done, err := a.Engine.BootOnce(ctx, asked, bootCause, lockWait)
	var locked *applier.LockedError
	switch {
	case err == nil && done:
		b.done, b.failed = asked, ""
		a.sendReport(ctx)
	case err == nil:
		b.begun, b.failed = asked, ""
	case ctx.Err() != nil || errors.As(err, &locked) || err.Error() == b.failed:
	default:
		b.failed = err.Error()
		a.Log.Error("booting the host", "error", err)
		a.sendEventToNode(ctx, Event{Warning: true, Reason: EventBootFailed, Message: "the host cannot be rebooted: " + err.Error()})
	}
}
