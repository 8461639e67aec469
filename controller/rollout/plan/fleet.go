package plan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Fleet is everything that a decision is made from: one snapshot of all Windows nodes.
type Fleet struct {
	Nodes  []Node
	Policy Policy
	// Now is what is written on Nodes and shown to people. How long something has lasted is in Node.Seen.
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
	// FailureLimit is the number of failed nodes that stops the rollout, without the first that failed for a fault of its host alone. A canary that
	// failed otherwise always does.
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
	// Target is what the wanted bundle is, without the values that belong to this node alone (see Target). A canary stands for
	// the nodes of its group and target.
	Target bundle.Digest

	// Wanted is the bundle that is rendered for the node; empty if there is none, for example because its inputs are refused.
	Wanted bundle.Digest
	// Cost is the impact of the difference between what the node has applied and what is wanted; empty if that is not known.
	Cost bundle.Impact
	// Urgent is what must reach the node while Wanted may not.
	Urgent Urgent
	// PayloadPending is true while executables of Wanted are still on their way to the host.
	PayloadPending bool
	// PayloadKept is true while Wanted has the executables of before, because newer ones are still on their way to the host.
	PayloadKept bool

	// Published and Permitted are what stands on the Node.
	Published bundle.Digest
	Permitted bundle.Impact
	// PublishedUrgent is true if what is published is for a paused node too.
	PublishedUrgent bool
	// Report is what the node agent says, Since when that became Applied or ceased to be, by the clock of the node: it is for estimates, and
	// tells one report from the next. Silent is true if the agent should report and does not.
	Report published.Report
	Since  time.Time
	Silent bool

	// Ready is the Node's condition, ReadySince when it last changed, by the clock of another computer.
	Ready      bool
	ReadySince time.Time
	// Unsettled says what is wrong on the node since its turn, such as pods that are not back.
	Unsettled string

	// Unschedulable is the Node's field, CordonedFor the annotation.
	Unschedulable bool
	CordonedFor   string
	// LeftCordoned is true for a node that the existing operator cordoned for an upgrade which it did not end: its adoption uncordons it.
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
	// Boot is what the Node says about a boot that a person or Windows asks for.
	Boot Boot
	// Leaving says why the node is about to go, such as a Machine that is being deleted.
	Leaving string
	// Foreign says why the node must not be touched: a newer operator has written its annotations.
	Foreign string
	// State is what the operator has noted, Seen for how long it has observed what it decides by.
	State State
	Seen  Seen
}

// Boot is a boot that no bundle is the reason of.
type Boot struct {
	// Asked is the digest of the value of published.RebootAnnotation, by which a person asks, Permitted what the operator has signed that the agent may do;
	// each is empty where there is none.
	Asked, Permitted bundle.Digest
	// Windows is what Windows waits for, as windowsnode.JoinBoots writes it; empty where it waits for nothing, or that is not known.
	Windows string
}

// Urgent is a bundle that differs from what the node has only in what must not wait for a rollout: the CAs that kubelet and API server
// trust each other by, and the pull secret.
type Urgent struct {
	// Bundle is empty if nothing is urgent.
	Bundle bundle.Digest
	Cost   bundle.Impact
	Inputs []UrgentInput
	// Mixed says what is urgent and not in Bundle, because it cannot be separated from other changes; empty if nothing is.
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

// cordonedByUs reports whether a rollout cordoned the node.
func (n *Node) cordonedByUs() bool { return n.CordonedFor == published.CordonedForRollout }

// unavailableLimit returns how many of n nodes may be unavailable.
func (p Policy) unavailableLimit(n int) int {
	scaled, err := intstr.GetScaledValueFromIntOrPercent(&p.MaxUnavailable, n, false)
	if err != nil {
		return 1 // the settings are checked before; the smallest number is never wrong
	}
	return max(1, scaled)
}
