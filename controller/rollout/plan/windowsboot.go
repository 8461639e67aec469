package plan

import (
	"slices"
	"time"

	"wmco/bundle"
	"wmco/controller/windowsnode"
)

// windowsAsksBoot reports whether a boot is due for what Windows waits for: at least one reason has not been there
// since the last such boot, and that is long enough ago. It is the node's own word, and so it is a reason for a boot of
// this node alone.
func (m *nodeState) windowsAsksBoot() bool { return m.windowsWaits() && m.Seen.Booted >= restAfterBoot }

// windowsWaits reports whether Windows waits for a boot that the operator sees to, now or later.
func (m *nodeState) windowsWaits() bool {
	return m.policy.WindowsBoots && m.bootsOnRequest() && m.lacksBootFor(m.State.WindowsBoot.Reasons)
}

// lacksBootFor reports whether Windows waits for something that is not among the reasons.
func (m *nodeState) lacksBootFor(reasons string) bool {
	if m.Boot.Windows == "" {
		return false
	}
	known := windowsnode.SplitBoots(reasons)
	return slices.ContainsFunc(windowsnode.SplitBoots(m.Boot.Windows), func(r bundle.BootReason) bool {
		return !slices.Contains(known, r)
	})
}

// windowsRequest stands for one boot for Windows. No other request of the node is the same, so that its agent does not
// take it for one that it has done.
func windowsRequest(node string, b WindowsBoot) bundle.Digest {
	return bundle.Of([]byte("windows boot\n" + node + "\n" + b.Reasons + "\n" + b.Begun.UTC().Format(time.RFC3339)))
}

func (m *nodeState) describeBoots() string {
	return windowsnode.DescribeBoots(windowsnode.SplitBoots(m.Boot.Windows))
}

// bootCause names who asked for the boot that is outstanding.
func (m *nodeState) bootCause() string {
	if m.Boot.Permitted == m.State.WindowsBoot.Request {
		return "Windows needs it"
	}
	return "requested by the annotation reboot"
}

// bootRequest names who asks for a boot.
func (m *nodeState) bootRequest() string {
	if m.personAsksBoot() {
		return "reboot requested (annotation reboot)"
	}
	return "Windows needs a reboot (" + m.describeBoots() + ")"
}

// noteGoneBoots returns the state without the reasons of the last boot that the node no longer reports: they ask for
// another boot when they are back. A report without facts is no evidence.
func (m *nodeState) noteGoneBoots() State {
	s := m.State
	if s.WindowsBoot.Reasons == "" || m.Report.Facts == nil || m.bootOutstanding() {
		return s
	}
	now := windowsnode.SplitBoots(m.Boot.Windows)
	left := slices.DeleteFunc(windowsnode.SplitBoots(s.WindowsBoot.Reasons), func(r bundle.BootReason) bool {
		return !slices.Contains(now, r)
	})
	s.WindowsBoot.Reasons = windowsnode.JoinBoots(left)
	return s
}

// isUnprovenBoot reports whether the host is being booted for Windows, or was, and the node has not worked since. A
// node that never works again keeps others of its group waiting for restAfterBoot, and no change of theirs.
func (m *nodeState) isUnprovenBoot() bool {
	switch {
	case m.hasSlot() && m.upToDate && m.windowsAsksBoot():
		return true
	case m.State.WindowsBoot.IsZero() || m.Seen.Booted >= restAfterBoot || m.Leaving != "":
		return false
	}
	return m.bootOutstanding() || !m.Ready || min(m.Seen.Ready, m.Seen.Booted) < m.policy.Settle
}

// windowsBootTimers are the times until something about boots for Windows changes although nothing happens.
func (m *nodeState) windowsBootTimers() []time.Duration {
	var list []time.Duration
	if m.windowsWaits() {
		list = append(list, restAfterBoot-m.Seen.Booted)
	}
	if m.policy.WindowsBoots && m.isUnprovenBoot() {
		list = append(list, restAfterBoot-m.Seen.Booted, m.policy.Settle-min(m.Seen.Ready, m.Seen.Booted))
	}
	return list
}

// bootAsked reports whether a person or Windows asks for a boot.
func (m *nodeState) bootAsked() bool { return m.personAsksBoot() || m.windowsAsksBoot() }
