package plan

import (
	"time"

	"wmco/bundle"
)

// Closed is until when no change of an impact may begin, because no window for it is open; zero for an impact that may begin now. A change without
// impact always may. It is a value of the moment of the Fleet: who makes a Fleet computes it from the settings.
type Closed struct{ Restart, Drain, Reboot time.Time }

// openTime returns when a change of that impact may begin; zero if it may begin at once.
func (c Closed) openTime(i bundle.Impact) time.Time {
	switch i { //nolint:exhaustive // the others never wait
	case bundle.ImpactRestart:
		return c.Restart
	case bundle.ImpactDrain:
		return c.Drain
	case bundle.ImpactReboot:
		return c.Reboot
	}
	return time.Time{}
}

// awaitsWindow reports whether the change of a node must wait until a window opens. One that has begun goes on, and what is urgent and restarts something
// does not wait. A boot that a person asks for is no change.
func (d decision) awaitsWindow() bool {
	return !d.hasBegunChange() && !d.urgentNeedsTurn() && d.fleet.now.Before(d.policy.Closed.openTime(d.need))
}

// hasBegunChange reports whether the node has a slot for the change, or its agent the permission.
func (d decision) hasBegunChange() bool {
	return d.hasSlot() || d.publishesWanted() && !d.done && d.Permitted.Rank() >= d.need.Rank()
}

// urgentNeedsTurn reports whether something urgent cannot reach the node without a turn.
func (d decision) urgentNeedsTurn() bool {
	return d.Urgent.Bundle != "" && d.urgentHasImpact() || d.Urgent.Mixed != ""
}

// describeWindow says when the window opens.
func (d decision) describeWindow() string {
	return "a change with impact " + string(d.need) + " waits for rollout.windows: the next one opens at " + d.policy.Closed.openTime(d.need).UTC().Format(time.RFC3339)
}

// wakeForWindow has the next decision made when the next window opens. It is for all nodes that wait, also for those about which nothing is decided
// again: Closed is another one then.
func (p *planner) wakeForWindow() {
	for _, opens := range []time.Time{p.policy.Closed.Restart, p.policy.Closed.Drain, p.policy.Closed.Reboot} {
		if left := opens.Sub(p.now); left > 0 && (p.plan.Wake == 0 || left < p.plan.Wake) {
			p.plan.Wake = left
		}
	}
}
