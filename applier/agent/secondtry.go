package agent

import (
	"cmp"
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// secondTryPause is how long after a rollback for a fault of the host its bundle is tried once more: what kept the host
// from the change, such as a scanner or an installer, has mostly ended by then.
const secondTryPause = 3 * time.Minute

// secondTry is a bundle that was rolled back for a fault of its host, which proves nothing about the bundle: it counts as
// rolled back when that happens twice. A process of the agent that is started again in between does not know of the
// first time.
type secondTry struct {
	bundle bundle.Digest
	// at is when it is retried, in the time since the boot of the host; the agent reports why until then.
	at  time.Duration
	why error
}

// grantSecondTry reports whether a bundle that was rolled back is tried once more, and notes it.
func (a *Agent) grantSecondTry(d bundle.Digest, err error, fault published.Fault) bool {
	if fault != published.FaultHost || a.second.bundle == d {
		return false
	}
	pause := a.Options.Jitter(secondTryPause)
	a.second = secondTry{bundle: d, at: a.sinceBoot() + pause,
		why: &faultError{fault, fmt.Errorf("%w (it is tried once more after %s)", err, secondTryPause)}}
	return true
}

// awaitSecondTry reports whether the published bundle waits for its second try.
func (a *Agent) awaitSecondTry() bool {
	f := &a.follower
	if a.second.bundle != f.desired.Bundle || a.sinceBoot() >= a.second.at {
		return false
	}
	f.report.State, f.report.Message, f.report.Fault = published.StateFailed, a.second.why.Error(), published.FaultHost
	f.retryAt, f.tried = a.second.at, max(f.tried, 1)
	return true
}

// faultOfRollback returns whose fault it is that a run of this process was rolled back.
func faultOfRollback(err error) published.Fault { return cmp.Or(faultOf(err), published.FaultHost) }
