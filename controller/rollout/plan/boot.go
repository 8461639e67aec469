package plan

import (
	"slices"
	"time"

	"wmco/bundle"
)

// bootRules are for a node whose host boots because a person asked for it with published.RebootAnnotation, or Windows
// waits for it: it is drained as for any other boot. One that a person asks for needs no canary, and does not wait for
// a rollout that is paused or stopped: a boot may be what helps.
func bootRules() []nodeRule {
	drain := drainRules()
	return append([]nodeRule{
		{"a host that does not boot in time is given up",
			func(d decision) bool { return d.bootOutstanding() && d.timedOut && d.Ready }, decision.giveUpBoot},
		{"a node agent that may boot its host is waited for", decision.bootOutstanding, func(d decision) {
			if d.timedOut {
				d.reportWaiting(ReasonUnreachable,
					"the host has not come back from the requested reboot; fix: check the host")
				return
			}
			d.reportWaiting(ReasonApplying, "the host is rebooting ("+d.bootCause()+"); times out at "+
				d.fleet.formatAfter(d.policy.Timeout-d.Seen.Permitted))
		}},
		{"an urgent change is published before a boot", decision.urgentIsDue, decision.publishUrgent},
		{"a node that does not respond is not drained for a boot",
			func(d decision) bool { return !d.reachable }, func(d decision) {
				d.releaseOrWait(waiting{ReasonUnreachable, "reboot requested, but the node does not respond"})
			}},
		{"a node whose drain did not end in time boots later", decision.isPostponed, func(d decision) {
			d.releaseOrWait(waiting{ReasonDrain,
				"reboot requested; the drain did not end in time, it is retried at " +
					d.fleet.formatAfter(d.policy.Timeout-d.Seen.Postponed)})
		}},
		{"a boot begins with a slot among the unavailable nodes",
			func(d decision) bool { return !d.hasSlot() }, func(d decision) {
				d.countWindowsBoot()
				d.takeSlot(d.bootRequest())
			}},
	}, append(drain[:len(drain)-1:len(drain)-1],
		nodeRule{"the host of a drained node may boot", nil, decision.permitBoot})...)
}

// urgentIsDue reports whether something urgent would be published at once if the node waited for something else than a
// boot.
func (d decision) urgentIsDue() bool {
	rules := d.fleet.rules.urgent
	return d.isBlocked() && firstRule(rules, d).name == rules[len(rules)-1].name
}

// giveUpBoot releases the slot. The same value of the annotation does not ask for a boot again.
func (d decision) giveUpBoot() {
	d.releaseSlot("the host did not perform the requested reboot in " + formatLimit(d.policy.Timeout) +
		"; fix: check the service windows-instance-config-daemon on it, and request it again: wmco reboot " + d.Name)
}

// releaseOrWait gives back a slot in which nothing was permitted.
func (d decision) releaseOrWait(w waiting) {
	if d.hasSlot() {
		d.releaseSlot(w.message)
		return
	}
	d.reportWaiting(w.reason, w.message)
}

// permitBoot permits the boot with the bundle that is published. What is known of the turn before as a canary stays: a
// boot proves nothing about a bundle, and takes nothing back.
func (d decision) permitBoot() {
	s := d.State
	s.Turn = d.turn
	s.Turn.Bundle, s.Turn.Impact, s.Turn.Begun, s.Turn.Permitted = d.Published, bundle.ImpactReboot,
		s.Slot.Taken, d.fleet.now
	s.Turn.Ended, s.Turn.Result = time.Time{}, ""
	request := d.Boot.Asked
	if d.policy.WindowsBoots && d.Boot.Windows != "" {
		s.WindowsBoot = WindowsBoot{Reasons: d.Boot.Windows, Begun: d.fleet.now}
		if !d.personAsksBoot() {
			request = windowsRequest(d.Name, s.WindowsBoot)
			s.WindowsBoot.Request = request
		}
	}
	s.Turn.Boot = request
	d.addStep(Step{Action: ActionPermit, Bundle: d.Published, Permit: bundle.ImpactReboot, Boot: request, State: s,
		Why: "the node is drained"})
}

// describeHeldBoot returns what a boot for Windows waits for; empty where Windows waits for none, or the
// operator boots for none.
func (d decision) describeHeldBoot() string {
	what := "Windows needs a reboot (" + d.describeBoots() + ")"
	switch {
	case !d.policy.WindowsBoots || d.Boot.Windows == "":
		return ""
	case !d.bootsOnRequest():
		return what + "; the node agent is too old to reboot the host on request"
	case !d.windowsWaits():
		return what + "; the reboot by the operator did not clear it; fix: find out on the host what requests the reboot, or run wmco reboot " + d.Name
	case !d.windowsAsksBoot():
		return what + "; the operator reboots the host at " + d.fleet.formatAfter(restAfterBoot-d.Seen.Booted) +
			" at the earliest, " + formatLimit(restAfterBoot) + " after the last reboot"
	}
	return joinMessage(what, d.windowsBootHeld())
}

// countWindowsBoots finds the nodes whose boots for Windows have not proved well.
func (p *planner) countWindowsBoots() {
	if !p.policy.WindowsBoots {
		return
	}
	p.windowsBoots = map[Group][]string{}
	for _, m := range p.nodes {
		if m.isUnprovenBoot() {
			p.windowsBoots[m.Group] = append(p.windowsBoots[m.Group], m.Name)
		}
	}
	for _, names := range p.windowsBoots {
		slices.Sort(names)
	}
}

// countWindowsBoot counts the node for the decisions that follow.
func (d decision) countWindowsBoot() {
	if boots := d.fleet.windowsBoots; d.slotAvailable() && !d.personAsksBoot() &&
		!slices.Contains(boots[d.Group], d.Name) {
		boots[d.Group] = append(boots[d.Group], d.Name)
	}
}
