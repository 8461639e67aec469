package plan

import (
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// blockerRules say why a node that has something to do may not start it.
func blockerRules() []blockerRule {
	always := func(text string) func(decision) string { return func(decision) string { return text } }
	return []blockerRule{
		{"a node without a bundle does not start",
			func(d decision) bool { return d.Wanted == "" },
			blocker{ReasonUnknown, always("no new bundle is rendered")}},
		{"a node that failed does not start again",
			func(d decision) bool { return d.failed != "" },
			blocker{ReasonFailed, func(d decision) string { return d.failed }}},
		{"a node that is leaving does not start",
			func(d decision) bool { return d.Leaving != "" },
			blocker{ReasonLeaving, func(d decision) string { return d.Leaving }}},
		{"a paused node does not start",
			func(d decision) bool { return d.Paused }, blocker{ReasonPaused, always("the node is paused")}},
		{"a paused rollout starts no node",
			func(d decision) bool { return d.policy.Paused }, blocker{ReasonPaused, always("the rollout is paused")}},
		{"a rollout that failures stopped starts no node",
			func(d decision) bool { return d.fleet.stopped != "" },
			blocker{ReasonStopped, func(d decision) string { return d.fleet.stoppedBy }}},
		{"a node whose drain did not end in time starts later",
			decision.isPostponed, blocker{ReasonDrain, func(d decision) string {
				return "the drain did not end in time; it is retried at " +
					d.fleet.formatAfter(d.policy.Timeout-d.Seen.Postponed)
			}}},
		{"a node starts when its executables are on the host",
			func(d decision) bool { return d.PayloadPending && d.Published != "" },
			blocker{ReasonPayload, always("executables are being copied to the host")}},
		{"a node starts while a window for its change is open", decision.awaitsWindow,
			blocker{ReasonWindow, decision.describeWindow}},
		// Not one that the existing operator left cordoned: only its own turn gives it back, and a canary that needs a
		// slot would wait for that.
		{"a node starts after the canaries of its kind",
			func(d decision) bool { return !d.LeftCordoned && !d.fleet.gate[d.canaryKind()].allowsNode(d.Name) },
			blocker{ReasonCanary, func(d decision) string {
				return "waiting for " + d.fleet.gate[d.canaryKind()].describeCanaries()
			}}},
		{"nothing else keeps a node from starting", nil, blocker{"", always("")}},
	}
}

func (d decision) findBlocker() waiting {
	b := firstRule(d.fleet.rules.blocker, d).result
	return waiting{b.reason, b.message(d)}
}

// startRules are for a node without a slot that does not have its wanted bundle.
func startRules() []nodeRule {
	return []nodeRule{
		{"a permission that the node agent does not answer is revoked", decision.isUnresponsive,
			decision.revokePermission},
		{"a node whose disk is full waits for room without a permission",
			func(d decision) bool { return d.waitsForRoom() && d.publishesWanted() && d.reachable && !d.Paused },
			decision.waitForRoom},
		{"a node agent that works on the wanted bundle is waited for", decision.agentAppliesWanted,
			decision.waitForAgent},
		{"a blocked node gets only urgent changes",
			decision.isBlocked, func(d decision) { d.publishUrgentOrWait(d.blocked) }},
		{"a node agent that restarts services for the bundle before is waited for",
			func(d decision) bool {
				return d.Permitted == bundle.ImpactRestart && d.answered && !d.done && !d.timedOut &&
					d.Report.State == published.StateApplying
			},
			func(d decision) {
				d.reportWaiting(ReasonApplying, "the node agent is still applying the previous bundle")
			}},
		{"a node that does not respond gets the wanted bundle without a permission",
			func(d decision) bool { return !d.reachable && !d.publishesWanted() }, func(d decision) {
				d.publishWanted(bundle.ImpactNone, "the node does not respond; "+
					"service restarts, drains and reboots are permitted when it responds again")
			}},
		{"a node that does not respond is waited for",
			func(d decision) bool { return !d.reachable },
			func(d decision) { d.reportWaiting(ReasonUnreachable, "the node does not respond") }},
		{"a change without impact is published at once",
			func(d decision) bool { return d.need == bundle.ImpactNone },
			func(d decision) { d.publishWanted(d.need, "no service restarts") }},
		// This is about the bundle before the wanted one.
		{"a node whose disk was full is not drained before its agent reports room",
			func(d decision) bool { return d.waitsForRoom() && d.need != bundle.ImpactRestart }, func(d decision) {
				d.publishWanted(bundle.ImpactNone, "the disk of the host was full; "+
					"the node is drained after its agent reports enough free space")
			}},
		// Without a signed annotation, its agent knows no other list of executables.
		{"a node that was told nothing gets the list of its executables before it is drained",
			func(d decision) bool { return d.PayloadPending }, func(d decision) {
				d.publishWanted(bundle.ImpactNone, "the node agent fetches the executables that the bundle lists")
			}},
		{"services restart on at most maxParallel nodes",
			func(d decision) bool { return d.need == bundle.ImpactRestart }, decision.permitRestart},
		{"a drain or a reboot begins with a slot among the unavailable nodes", nil, decision.reserveSlot},
	}
}

func (d decision) agentAppliesWanted() bool {
	expected := d.Wanted != "" && d.publishesWanted() && !d.done && d.failed == "" && !d.Paused
	return expected && (d.reachable || d.Permitted != bundle.ImpactNone)
}

// revokePermission takes back what the node agent does not answer.
func (d decision) revokePermission() {
	s := d.State
	s.Turn.Permitted, s.Turn.Impact = d.fleet.now, bundle.ImpactNone
	d.addStep(Step{Action: ActionPermit, Bundle: d.Published, Permit: bundle.ImpactNone, State: s,
		Why: "the node agent does not respond"})
}

// waitForRoom keeps no slot for a node whose disk is full: its permission to restart services ends. When there is room,
// its agent asks for it again.
func (d decision) waitForRoom() {
	if d.Permitted != bundle.ImpactRestart {
		d.reportWaiting(ReasonRoom, d.Report.Message)
		return
	}
	s := d.State
	s.Turn.Permitted = d.fleet.now
	d.addStep(Step{Action: ActionPermit, Bundle: d.Published, Permit: bundle.ImpactNone, State: s,
		Why: "the disk of the host is full"})
}

// permitRestart permits the restart of services where there is a slot.
func (d decision) permitRestart() {
	restarting := d.isRestarting()
	if d.fleet.restarting >= d.policy.MaxParallel && !restarting {
		d.publishUrgentOrWait(waiting{ReasonParallel,
			fmt.Sprintf("waiting: services are restarting on %s, the limit of rollout.maxParallel",
				bundle.Count(d.policy.MaxParallel, "node"))})
		return
	}
	d.fleet.restarting += boolToInt(!restarting)
	d.publishWanted(d.need, "services may restart")
}

// awaitsWindow reports whether the change of a node must wait until a window opens. One that has begun goes on, and
// an urgent one that restarts something does not wait. A boot that a person asks for is no change.
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

// describeWindow returns when the window opens.
func (d decision) describeWindow() string {
	return "waiting for a maintenance window (rollout.windows, impact " + string(d.need) + "); the next one opens at " +
		d.policy.Closed.openTime(d.need).UTC().Format(time.RFC3339)
}
