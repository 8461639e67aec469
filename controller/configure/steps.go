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
	// steps are those of hosts that are worked on, works the work on those of nodes.
	steps map[string]remote.Step
	works map[string]Work
	// stepCalls are called when a step is another one, and waiting is true from then until the steps are read:
	// thousands of steps are one call.
	stepCalls []func()
	waiting   bool
	// moved reports whether the last Progress has another text about a host that is on its way.
	moved bool
}

// maxStep is how much of a step is shown, in bytes. It may be text of a host.
const maxStep = 200

// OnStep has f called when a host does something else, or has got further with it: once until StatusHosts is called. It
// is called before hosts are noted, and f must not block.
func (u *Unjoined) OnStep(f func()) { u.stepCalls = append(u.stepCalls, f) }

// NoteStep notes the current step of a host.
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

// EndStep notes that nothing is being done with a host.
func (u *Unjoined) EndStep(host string) {
	u.changeSteps(func() bool {
		before := u.visibleStep(host)
		delete(u.steps, host)
		return before != ""
	})
}

// changeSteps tells if change, which is called under the lock, reports that people see something else.
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

// visibleStep returns the current step of a host. Reconnecting is not shown: it has less information than the last step,
// and would come and go.
func (u *Unjoined) visibleStep(host string) string {
	s := u.steps[host]
	if _, failed := u.hosts[host]; s.Connects && (failed || u.joining[host].Message != "") {
		return ""
	}
	return s.Text
}

// isOnItsWay reports whether the host was on its way when it was last tried.
func (u *Unjoined) isOnItsWay(host string) bool {
	_, ok := u.joining[host]
	return ok
}

// joiningText returns how far a host is that is on its way.
func (u *Unjoined) joiningText(host string) string {
	return cmp.Or(u.visibleStep(host), bundle.BoundedText(u.joining[host].Message, maxStep), "the host is joining")
}

// withStep adds the current step of a host that was kept from joining. One that did not answer yet, and answers
// now, is on its way.
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

// maxTried is how much of a failure is shown while the host is retried, in bytes.
const maxTried = 700
