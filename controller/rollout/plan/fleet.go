package plan

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// Fleet is everything that a decision is made from: one snapshot of all Windows nodes.
type Fleet struct {
	Nodes  []Node
	Policy Policy
	// Now is the time for Nodes and people. How long something has lasted is in Node.Seen.
	Now time.Time
}

// Policy limits how many nodes change at once.
type Policy struct {
	// MaxUnavailable is a number, or a percentage of all Windows nodes rounded down, at least 1.
	MaxUnavailable intstr.IntOrString
	// MaxParallel is the number of nodes whose services restart at once.
	MaxParallel int
	// Canaries is how many nodes of each kind go before the others.
	Canaries int
	// FailureLimit is the number of failed nodes that stops the rollout, without the first that failed for a fault of
	// its host alone. A canary that failed otherwise always does.
	FailureLimit int
	// Paused starts no node.
	Paused bool
	// Settle is how long a canary must work before the others follow, Timeout how long the turn of a node may take.
	Settle, Timeout time.Duration
	// Closed is until when changes wait for a window.
	Closed Closed
	// WindowsBoots has hosts booted for what Windows itself waits for.
	WindowsBoots bool
}

// unavailableLimit returns how many of n nodes may be unavailable.
func (p Policy) unavailableLimit(n int) int {
	scaled, err := intstr.GetScaledValueFromIntOrPercent(&p.MaxUnavailable, n, false)
	if err != nil {
		return 1 // the settings are checked before; the smallest number is never wrong
	}
	return max(1, scaled)
}

// Group is what makes nodes alike.
type Group struct {
	Platform bundle.Platform
	// OSBuild is major.minor.build.
	OSBuild string
}

// Node is one Windows node.
type Node struct {
	Name  string
	Group Group
	// Target is what the wanted bundle is, without the values that belong to this node alone (see Target). A canary
	// stands for the nodes of its group and target.
	Target bundle.Digest

	// Wanted is the bundle that is rendered for the node; empty if there is none, for example because its inputs are
	// refused.
	Wanted bundle.Digest
	// Cost is the impact of the difference between the applied and the wanted bundle; empty if that is not
	// known.
	Cost bundle.Impact
	// Urgent is what must reach the node while Wanted may not.
	Urgent Urgent
	// PayloadPending is true while executables of Wanted are still on their way to the host.
	PayloadPending bool
	// PayloadKept is true while Wanted has the executables of before, because newer ones are still on their way to the
	// host.
	PayloadKept bool

	// Published and Permitted are those of the Node's annotation.
	Published bundle.Digest
	Permitted bundle.Impact
	// PublishedUrgent is true if the published bundle is for a paused node too.
	PublishedUrgent bool
	// Report is the report of the node agent, Since when that became Applied or ceased to be, by the clock of the node: it
	// is for estimates, and tells one report from the next. Silent is true if the agent should report and does not.
	Report published.Report
	Since  time.Time
	Silent bool

	// Ready is the Node's condition, ReadySince when it last changed, by the clock of another computer.
	Ready      bool
	ReadySince time.Time
	// Unsettled is what does not work on the node since its update, such as pods that are not back.
	Unsettled string

	// Unschedulable is the Node's field, CordonedFor the annotation.
	Unschedulable bool
	CordonedFor   string
	// LeftCordoned is true for a node that the existing operator cordoned for an upgrade which it did not end: its
	// adoption uncordons it.
	LeftCordoned bool
	// Drained is true if no pod is left that a drain would evict.
	Drained bool
	// DrainBlocked names what keeps pods from being evicted, such as a PodDisruptionBudget and its pod.
	DrainBlocked string
	// DrainForbidden is true if a PodDisruptionBudget does: that is noted on the Node.
	DrainForbidden bool
	// ScaleDownDisabled is true if the autoscaler is told to leave the node.
	ScaleDownDisabled bool

	// Joining is true while the operator still joins the node: it has no pods yet.
	Joining bool
	// Paused is true for a node with the annotation.
	Paused bool
	// Retry is the value of published.RetryAnnotation: another one than before asks for another try of what failed.
	Retry string
	// Boot is the Node's request for a boot by a person or Windows.
	Boot Boot
	// Leaving is why the node is about to leave, such as a Machine that is being deleted.
	Leaving string
	// Removing is true for a node that was told to end: it is told nothing else.
	Removing bool
	// Foreign is why the node must not be touched: a newer operator has written its annotations.
	Foreign string
	// State is what the operator has noted, Seen for how long it has observed what it decides by.
	State State
	Seen  Seen
}

// hasSlot reports whether the node has a slot among the unavailable nodes, confirmed or not.
func (n *Node) hasSlot() bool { return !n.State.Slot.IsZero() }

// publishesWanted reports whether the wanted bundle is the one that is published.
func (n *Node) publishesWanted() bool { return n.Published == n.Wanted }

// isDisruptive reports whether something is permitted that needs a drained node.
func (n *Node) isDisruptive() bool {
	return n.Published != "" && (n.Permitted == bundle.ImpactDrain || n.Permitted == bundle.ImpactReboot)
}

// cordonedByUs reports whether a rollout cordoned the node.
func (n *Node) cordonedByUs() bool { return n.CordonedFor == published.CordonedForRollout }

// bootsOnRequest reports whether the agent of the node knows of boots that a person asks for.
func (n *Node) bootsOnRequest() bool { return n.Report.Has(published.FeatureBoot) }

// personAsksBoot reports whether a person asks for a boot, which the agent has not done and the operator not given up.
func (n *Node) personAsksBoot() bool {
	return n.Boot.Asked != "" && n.Boot.Asked != n.Report.Rebooted && n.Boot.Asked != n.State.Booted &&
		n.bootsOnRequest()
}

// bootOutstanding reports whether the agent may boot the host, and does not say that it has.
func (n *Node) bootOutstanding() bool {
	return n.isDisruptive() && n.Boot.Permitted != "" && n.Boot.Permitted != n.Report.Rebooted && n.bootsOnRequest()
}

// Boot is a boot that no bundle is the reason of.
type Boot struct {
	// Asked is the digest of the value of published.RebootAnnotation, by which a person asks, Permitted what the
	// operator has signed that the agent may do; each is empty where there is none.
	Asked, Permitted bundle.Digest
	// Windows is what Windows waits for, as windowsnode.JoinBoots writes it; empty where it waits for nothing, or that
	// is not known.
	Windows string
}

// Urgent is a bundle that differs from what the node has only in what must not wait for a rollout: the CAs that kubelet
// and API server trust each other by, and the pull secret.
type Urgent struct {
	// Bundle is empty if nothing is urgent.
	Bundle bundle.Digest
	Cost   bundle.Impact
	Inputs []UrgentInput
	// Mixed lists urgent inputs that are not in Bundle, because they cannot be separated from other changes; empty if there
	// are none.
	Mixed string
}

// UrgentInput is one input that must not wait.
type UrgentInput struct {
	// Name is one of few: "kubelet client CA".
	Name string
	// Expires is when the node is lost without it; zero if there is no such time.
	Expires time.Time
	// Text is the input for people: "the kubelet client CA (signer of the node expires on 2026-03-01)".
	Text string
}

// describeInputs names the inputs for people.
func (u Urgent) describeInputs() string {
	var list []string
	for _, i := range u.Inputs {
		list = append(list, i.Text)
	}
	return strings.Join(list, " and ")
}

// Closed is until when no change of an impact may begin, because no window for it is open; zero for an impact that may
// begin now. A change without impact always may. It is a value of the moment of the Fleet: who makes a Fleet computes
// it from the settings.
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

// Seen is for how long states have lasted, as the operator has observed them by its own monotonic clock. No
// time that is written somewhere is subtracted from now: clocks are set, those of other computers are others, and an
// operator that was away has observed nothing.
type Seen struct {
	// Permitted is the time since the impact of State.Turn was permitted, Ended since that turn ended.
	Permitted, Ended time.Duration
	// Taken is the time since State.Slot was taken, Postponed since a drain was postponed.
	Taken, Postponed time.Duration
	// Ready is for how long the node has been Ready, or not; Reported for how long its report has been Applied, or not.
	Ready, Reported time.Duration
	// Booted is the time since the agent might boot the host on request last; the longest time where no such boot is
	// known.
	Booted time.Duration
}

// restAfterBoot is the least time between two boots of a host for what Windows waits for, and after one that a person
// asked for. Whether Windows waits is the word of the node alone: with this, a node that always reports another reason
// boots four times a day.
const restAfterBoot = 6 * time.Hour

// The state of a rollout on a Node: windowsnode encodes and decodes it.
type (
	// State is what the operator knows about a node.
	State = windowsnode.RolloutState
	// Turn is the change of one node to one bundle.
	Turn = windowsnode.Turn
	// Slot is a node's share of Policy.MaxUnavailable.
	Slot = windowsnode.Slot
	// WindowsBoot is a boot of a host for what Windows itself waited for.
	WindowsBoot = windowsnode.WindowsBoot
	// Elapsed is what of Seen is in the annotation.
	Elapsed = windowsnode.Elapsed
)

// retryDigest stands for the value of published.RetryAnnotation or RebootAnnotation, whose length has no limit.
func retryDigest(text string) bundle.Digest {
	if text == "" {
		return ""
	}
	return bundle.Of([]byte(text))
}

func largerImpact(a, b bundle.Impact) bundle.Impact {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// joinMessage puts a node's message behind a text, unless it is the same.
func joinMessage(what, message string) string {
	if message == "" || strings.HasPrefix(message, what) {
		return cmp.Or(message, what)
	}
	return what + ": " + message
}

// joinFirst joins the first few of a list for people.
func joinFirst(list []string) string {
	return bundle.JoinFirst(list, 3, ", ", bundle.AndOthers)
}

func boolToInt(b bool) int { //nolint:revive // a number, not a mode
	if b {
		return 1
	}
	return 0
}
