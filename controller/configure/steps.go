package configure

import (
	"cmp"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/status"
)

// underWay is the current work on hosts.
type underWay struct {
	// steps are the current steps, by host; works is the current work on hosts of nodes, by Node.
	steps map[string]remote.Step
	works map[string]Work
	// stepCalls are called when a step changes. waiting is true from then until the steps are read: thousands of steps
	// cause one call.
	stepCalls []func()
	waiting   bool
	// moved reports whether the last Progress changed the message of a joining host.
	moved bool
}

// maxStep is the length of a shown step in bytes. A host may have written it.
const maxStep = 200

// OnStep registers f, which is called when the step of a host changes, and not again before StatusHosts is called. OnStep
// must be called before hosts are recorded. f must not block.
func (u *Unjoined) OnStep(f func()) { u.stepCalls = append(u.stepCalls, f) }

// NoteStep records the current step of a host.
func (u *Unjoined) NoteStep(host string, s remote.Step) {
	s.Text = bundle.BoundedText(s.Text, maxStep)
	u.changeSteps(func() bool {
		before := u.visibleStep(host)
		if u.steps == nil {
			u.steps = map[string]remote.Step{}
		}
		u.steps[host] = s
		return u.visibleStep(host) != before
	})
}

// EndStep records that the host has no current step.
func (u *Unjoined) EndStep(host string) {
	u.changeSteps(func() bool {
		before := u.visibleStep(host)
		delete(u.steps, host)
		return before != ""
	})
}

// changeSteps calls change under the lock, and stepCalls if change reports that the status differs.
func (u *Unjoined) changeSteps(change func() bool) {
	u.mu.Lock()
	tell := change() && !u.waiting
	u.waiting = u.waiting || tell
	u.mu.Unlock()
	if !tell {
		return
	}
	for _, f := range u.stepCalls {
		f()
	}
}

// visibleStep returns the current step of a host. Reconnecting is not shown, because the last message has more
// information.
func (u *Unjoined) visibleStep(host string) string {
	s := u.steps[host]
	if _, failed := u.hosts[host]; s.Connects && (failed || u.joining[host].Message != "") {
		return ""
	}
	return s.Text
}

// isOnItsWay reports whether the host was joining at the last attempt.
func (u *Unjoined) isOnItsWay(host string) bool {
	_, ok := u.joining[host]
	return ok
}

// joiningText returns the progress of a joining host.
func (u *Unjoined) joiningText(host string) string {
	return cmp.Or(u.visibleStep(host), bundle.BoundedText(u.joining[host].Message, maxStep), "the host is joining")
}

// withStep adds the current step of a host that could not join. A host that did not answer before, and answers now, is
// joining.
func (u *Unjoined) withStep(h status.Host, host string) status.Host {
	step := u.visibleStep(host)
	switch {
	case step == "":
	case h.State == nodestate.Joining:
		h.Reason, h.Message, h.Fix = reasonJoining, step, ""
	default:
		h.Message = published.ShortenTo(h.Message, maxTried) + "; it is retried: " + step
	}
	return h
}

// maxTried is the length of a failure in bytes that is shown while the host is retried.
const maxTried = 700
