package plan

import (
	"wmco/bundle"
	"wmco/bundle/published"
)

// urgentRules are for a node that waits, for the reason in blocked: all but the last keep the urgent bundle from being
// published before.
func urgentRules() []nodeRule {
	return []nodeRule{
		{"a node without anything urgent waits",
			func(d decision) bool { return d.Urgent.Bundle == "" }, decision.waitForBlocker},
		{"an urgent bundle that is published already is waited for", decision.urgentIsPublished,
			decision.waitForBlocker},
		{"an urgent bundle that restarts something waits for a slot", decision.urgentHasImpact,
			decision.waitForBlocker},
		{"a node without a bundle gets nothing urgent",
			func(d decision) bool { return d.blocked.reason == ReasonUnknown }, decision.waitForBlocker},
		{"a node that is leaving gets nothing urgent",
			func(d decision) bool { return d.blocked.reason == ReasonLeaving }, decision.waitForBlocker},
		{"a change without impact follows its canary soon enough",
			func(d decision) bool { return d.blocked.reason == ReasonCanary && d.need == bundle.ImpactNone },
			decision.waitForBlocker},
		{"a bundle that failed is not published because it is urgent",
			func(d decision) bool { return d.Urgent.Bundle == d.Wanted && (d.fleet.stopped != "" || d.failed != "") },
			decision.waitForBlocker},
		// It may be applying. That of a paused node does not begin.
		{"a node agent that may be restarting services is not interrupted",
			func(d decision) bool { return d.isRestarting() && (!d.Paused || d.answered) }, decision.waitForBlocker},
		{"anything else that is urgent is published at once", nil, decision.publishUrgent},
	}
}

// publishUrgentOrWait publishes an urgent bundle, and otherwise reports what the node waits for.
func (d decision) publishUrgentOrWait(w waiting) {
	d.blocked = w
	d.applyFirst(d.fleet.rules.urgent)
}

func (d decision) waitForBlocker() { d.reportWaiting(d.blocked.reason, d.blocked.message) }

// urgentIsPublished reports whether the node agent has, or gets, the urgent bundle. The same may have been published as
// not urgent: then the agent of a paused node does not begin, and another one does not where it has drift to repair
// that costs more.
func (d decision) urgentIsPublished() bool {
	begins := d.PublishedUrgent || !d.Paused && !d.done || d.answered && d.Report.State == published.StateApplied
	return d.Urgent.Bundle == d.Published && begins
}

func (d decision) publishUrgent() {
	s := d.stateWithTurn(d.Urgent.Bundle, bundle.ImpactNone)
	if d.failed != "" && !d.failedForHost() { // what its host alone kept from it is retried
		s.Failed, s.FailedRetry = d.Wanted, retryDigest(d.Retry)
	}
	d.addStep(Step{
		Action: ActionPublish, Bundle: d.Urgent.Bundle, Permit: bundle.ImpactNone, Urgent: true, State: s,
		Why: d.Urgent.describeInputs() + " must not wait (" + d.blocked.message + ")",
	})
}

// alertRules explain why an urgent input does not reach the node. A node that does not answer gets it when it does.
func alertRules() []nodeRule {
	return []nodeRule{
		{"a node that is up to date or leaving raises no alert",
			func(d decision) bool { return d.upToDate || d.Leaving != "" }, func(decision) {}},
		{"a node without anything urgent raises no alert",
			func(d decision) bool { return d.Urgent.Bundle == "" }, decision.alertMixed},
		{"a full disk keeps urgent changes from the node", decision.waitsForRoom, func(d decision) {
			d.addAlert(d.Urgent.describeInputs(), d.Report.Message)
			d.alertMixed()
		}},
		{"a node agent that has ended or timed out has not applied the urgent change",
			func(d decision) bool {
				return d.Urgent.Bundle == d.Published && d.Ready && (d.timedOut || d.done && d.answered)
			},
			func(d decision) {
				d.addAlert(d.Urgent.describeInputs(),
					joinMessage("not applied by the node agent", d.Report.Message))
				d.alertMixed()
			}},
		{"an urgent change that restarts something waits as long as the node is blocked",
			func(d decision) bool { return d.Urgent.Bundle != d.Published && d.urgentHasImpact() && d.isBlocked() },
			func(d decision) {
				d.addAlert(d.Urgent.describeInputs()+" (impact "+string(d.Urgent.Cost)+")", d.blocked.message)
				d.alertMixed()
			}},
		{"anything else that is urgent is on its way", nil, decision.alertMixed},
	}
}

// alertMixed is about an urgent input that cannot be separated from other changes.
func (d decision) alertMixed() {
	if u := d.Urgent; u.Mixed != "" && d.isBlocked() {
		d.fleet.addHeld(Held{Node: d.Name, Message: u.Mixed +
			", which can be published only with other changes of the node: " + d.blocked.message})
	}
}

func (d decision) addAlert(what, why string) {
	d.fleet.addHeld(Held{Node: d.Name, Message: what + ": " + why, Inputs: d.Urgent.Inputs})
}

func (p *planner) addHeld(h Held) { p.plan.Fleet.Urgent = append(p.plan.Fleet.Urgent, h) }
