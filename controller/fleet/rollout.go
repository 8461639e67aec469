package fleet

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// Rollout is how far the nodes are on their way to their wanted bundles. It is judged by the rules that the operator decides
// by, from the annotations of the Nodes: the wanted bundle of a waiting node is not known, only
// that there is one.
type Rollout struct {
	plan.Summary
	// Nodes are all Windows nodes, by name.
	Nodes []plan.Status `json:"nodes"`
	// TakesSeconds is the estimated time to the end, from the turns before; 0 where nothing moves. It is a lower limit
	// if Unmeasured holds impacts, of which no turn is known, or if nodes are left behind.
	TakesSeconds int64           `json:"takesSeconds,omitempty"`
	Unmeasured   []bundle.Impact `json:"unmeasured,omitempty"`
	// Note is what could not be read.
	Note string `json:"note,omitempty"`
}

// Takes is the estimated time to the end.
func (r Rollout) Takes() time.Duration { return time.Duration(r.TakesSeconds) * time.Second }

// Policy returns the limits that settings give a rollout. They were checked when they were decoded.
func Policy(settings render.Settings) plan.Policy {
	s := settings.Rollout
	settle, _ := time.ParseDuration(s.Settle)
	timeout, _ := time.ParseDuration(s.NodeTimeout)
	return plan.Policy{
		MaxUnavailable: s.MaxUnavailable, MaxParallel: s.MaxParallel, Canaries: s.Canaries,
		FailureLimit: s.FailureLimit, Paused: s.Paused,
		Settle: settle, Timeout: timeout, WindowsBoots: settings.WindowsReboots == render.WindowsRebootsCoordinate,
	}
}

// ClosedWindows returns until when changes wait for a window of the settings, by the time of day.
func ClosedWindows(s render.RolloutSettings) func(now time.Time) plan.Closed {
	return func(now time.Time) plan.Closed {
		return plan.Closed{Restart: s.NextStart(bundle.ImpactRestart, now), Drain: s.NextStart(bundle.ImpactDrain, now),
			Reboot: s.NextStart(bundle.ImpactReboot, now)}
	}
}

// PolicyAt is Policy with the windows of that moment.
func PolicyAt(s render.Settings, now time.Time) plan.Policy {
	p := Policy(s)
	p.Closed = ClosedWindows(s.Rollout)(now)
	return p
}

// rolling returns where the rollout is. The operator's report wins: it has rendered the wanted bundles.
func rolling(nodes []windowsnode.Node, policy plan.Policy, reported []metav1.Condition, now time.Time) Rollout {
	c := meta.FindStatusCondition(reported, status.RolledOut)
	f := plan.ElapsedByStamps(plan.Fleet{Policy: policy, Now: now,
		Nodes: observed(nodes, c != nil && c.Status == metav1.ConditionFalse)})
	next := plan.NextSteps(f)
	r := Rollout{Summary: next.Fleet, Nodes: next.Nodes}
	if c != nil && c.Message != "" {
		r.Message = c.Message
	}
	if r.Updating+r.Waiting > 0 {
		p := plan.PredictRollout(f, plan.LearnDurations(f))
		r.TakesSeconds, r.Unmeasured = int64(p.Takes/time.Second), p.Unmeasured
	}
	return r
}

// observed reads the Nodes, and infers the wanted bundle of each. Pending is true if the operator reports that nodes wait.
func observed(nodes []windowsnode.Node, pending bool) []plan.Node {
	list := make([]plan.Node, len(nodes))
	layers := make([]bundle.Digest, len(nodes))
	urgent := make([]bool, len(nodes))
	newest := -1
	for i, node := range nodes {
		n := plan.ObserveNode(node, node.Desired, node.DesiredError)
		n.Silent = windowsnode.Silence(windowsnode.SilenceByKubelet).IsSilent(node)
		if node.DesiredError == nil {
			layers[i], urgent[i] = node.Desired.Cluster.Digest, node.Desired.Urgent
		}
		n.Wanted, n.Target, n.PayloadKept = n.Published, layers[i], keepsPayload(node)
		list[i] = n
		if rolled(n) && !urgent[i] && (newest < 0 || n.State.Turn.Permitted.After(list[newest].State.Turn.Permitted)) {
			newest = i
		}
	}
	for i := range list {
		n := &list[i]
		switch {
		case n.State.Failed != "" && n.State.Failed != n.Published:
			n.Wanted = n.State.Failed
		case urgent[i] && pending: // it has what must not wait, and waits for the rest
			n.Wanted = unknown(n.Name)
		case drainsBeforePublishing(*n):
			n.Wanted, n.Cost = unknown(n.Name), bundle.ImpactDrain
		case pending && newest >= 0 && !n.PayloadKept && layers[i] != layers[newest] && n.Published != "" &&
			!n.Joining && n.State.Turn.Permitted.Before(list[newest].State.Turn.Begun):
			n.Wanted, n.Target, n.Cost = unknown(n.Name), layers[newest], list[newest].State.Turn.Impact
		}
	}
	return list
}

// keepsPayload reports whether an operator of another version works on the node, whose executables are not on its host
// yet: it labels the node when they are.
func keepsPayload(node windowsnode.Node) bool {
	version, wanted := node.Annotations[published.VersionAnnotation],
		node.Annotations[published.DesiredVersionAnnotation]
	return version != "" && wanted != "" && version != wanted && node.Labels[published.UpgradingLabel] == ""
}

// rolled reports whether the published bundle came with a rollout: not when the node joined.
func rolled(n plan.Node) bool {
	t := n.State.Turn
	return !t.IsZero() && t.Bundle == n.Published && (t.Canary || len(n.State.Past) > 0)
}

// drainsBeforePublishing reports whether the node is drained for a bundle that is not published on it yet.
func drainsBeforePublishing(n plan.Node) bool {
	return !n.State.Slot.IsZero() && n.Permitted.Rank() < bundle.ImpactDrain.Rank() &&
		n.Report.Desired == n.Published && n.Report.State == published.StateApplied
}

// unknown stands for the digest of a bundle that only the operator knows.
func unknown(node string) bundle.Digest {
	return bundle.Of(fmt.Appendf(nil, "wanted for %s", node))
}
