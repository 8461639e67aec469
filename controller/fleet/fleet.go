// Package fleet says where each Windows node is on its way to the bundle that is published for it, from the cluster alone.
//
//	Nodes (annotations, conditions) --Read--> a row for each node: desired, applied, state, since when, why, what to do
//	WindowsNodesStatus ---------------'       conditions: what the operator says about all of them
//
// It asks no node and reads no Secret.
package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/status"
	"wmco/render/reason"
)

// State is where a node is.
type State string

const (
	// StateCurrent means that the node has the published bundle.
	StateCurrent State = "Current"
	// StateStale means that the node has not acted on the published bundle yet.
	StateStale State = "Stale"
	// StateApplying means that the node applies it.
	StateApplying State = "Applying"
	// StateWaiting means that the node needs something from the operator, or a boot.
	StateWaiting State = "Waiting"
	// StateFailed means that the bundle could not be applied, or was rolled back.
	StateFailed State = "Failed"
	// StateSilent means that the node agent does not report.
	StateSilent State = "Silent"
	// StateUnpublished means that no bundle is published for the node.
	StateUnpublished State = "Unpublished"
	// StateRefused means that the newest bundle of the node is refused. It has what was published before, if anything was.
	StateRefused State = "Refused"
)

// Row is one node.
type Row struct {
	Node    string        `json:"node"`
	State   State         `json:"state"`
	Stage   bundle.Stage  `json:"stage,omitempty"`
	Desired bundle.Digest `json:"desired,omitempty"`
	Applied bundle.Digest `json:"applied,omitempty"`
	// Since is when the condition of the node agent last changed, zero where there is none.
	Since time.Time `json:"since,omitzero"`
	// Reason is the state of the agent's report, Message what it says, and Fix what to do.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Fix     string `json:"fix,omitempty"`
	// MaxImpact is what is allowed for the published bundle, Impact what the node would need where that is more.
	MaxImpact bundle.Impact `json:"maxImpact,omitempty"`
	Impact    bundle.Impact `json:"impact,omitempty"`
	// Missing are executables that are not on the host, RebootPending what takes effect with its next boot.
	Missing       []string         `json:"missing,omitempty"`
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Repaired is how often something that had drifted was restored.
	Repaired int `json:"repaired,omitempty"`
	// Agent is the version of the node agent, Reported the time of its last sign of life.
	Agent    string    `json:"agent,omitempty"`
	Reported time.Time `json:"reported,omitzero"`
}

// Fleet are the Windows nodes of a cluster.
type Fleet struct {
	// Conditions are what the operator says about all nodes; none where the cluster does not serve the kind or the user may not read it.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Nodes are sorted by name.
	Nodes []Row `json:"nodes"`
}

// Read reads the Windows nodes and what the operator in the namespace says. Findings are about objects that cannot be read.
func Read(ctx context.Context, r objects.Reader, namespace string, now time.Time) (Fleet, bundle.Findings, error) {
	set, err := r.Read(ctx, []objects.Want{{Version: "v1", Kind: "Node", Labels: map[string]string{corev1.LabelOSStable: "windows"}}, status.Want(namespace)})
	if err != nil {
		return Fleet{}, nil, err
	}
	f := Fleet{Nodes: []Row{}}
	var said status.Status
	for _, o := range set.Objects {
		if o.Kind == status.Kind {
			if said, err = status.Decode(o.JSON); err != nil {
				return Fleet{}, nil, err
			}
			continue
		}
		var node corev1.Node
		if err := json.Unmarshal(o.JSON, &node); err != nil {
			return Fleet{}, nil, fmt.Errorf("reading Node %s: %w", o.Name, err)
		}
		f.Nodes = append(f.Nodes, Of(node, now))
	}
	f.Conditions = said.Conditions
	for i := range f.Nodes {
		for _, refused := range said.Refused {
			if refused.Node == f.Nodes[i].Node {
				f.Nodes[i].refuse(refused)
			}
		}
	}
	slices.SortFunc(f.Nodes, func(a, b Row) int { return strings.Compare(a.Node, b.Node) })
	// A user who may read Nodes and not the status sees the nodes.
	return f, slices.DeleteFunc(set.Findings, func(x bundle.Finding) bool { return x.Reason == reason.Forbidden && x.Object.Kind == status.Kind }), nil
}

// refuse adds that the newest bundle is refused. What is wrong with the published one is more urgent.
func (r *Row) refuse(by status.Refused) {
	switch r.State {
	case StateCurrent, StateStale, StateApplying, StateUnpublished:
		r.State, r.Reason, r.Message, r.Fix = StateRefused, by.Reason, by.Message, by.Fix
	case StateWaiting, StateFailed, StateSilent, StateRefused:
	}
}

// Of returns the row of one node.
func Of(node corev1.Node, now time.Time) Row {
	r := Row{Node: node.Name}
	report, reported := r.readReport(node)
	desired, err := published.DecodeDesired(node.Annotations[published.DesiredAnnotation])
	switch {
	case node.Annotations[published.DesiredAnnotation] == "":
		r.State, r.Fix = StateUnpublished, "check the events of the operator's Deployment; a node that has just joined is published when its facts are known"
		r.Message = "no bundle is published for this node"
		return r
	case err != nil:
		r.State, r.Message, r.Fix = StateFailed, fmt.Sprintf("the annotation %s cannot be read: %v", published.DesiredAnnotation, err), "remove the annotation; the operator writes it again"
		return r
	}
	r.Desired, r.MaxImpact = desired.Bundle, desired.MaxImpact
	if l, err := desired.Node.Open(nil); err == nil {
		r.Stage = l.Stage
	}
	switch {
	case !reported:
		r.State, r.Message, r.Fix = StateSilent, "the node agent has not reported yet", agentFix
	case isSilent(node, r.Reported, now):
		r.State, r.Message, r.Fix = StateSilent, "the node agent has not reported for "+now.Sub(r.Reported).Round(time.Minute).String(), agentFix
	case report.Desired != desired.Bundle:
		r.State, r.Reason, r.Message = StateStale, "", "the node agent has not acted on the published bundle yet"
	default:
		r.judge(report)
	}
	return r
}

const agentFix = `check the service windows-instance-config-daemon on the host, and its log under C:\var\log\wicd`

// readReport reads what the agent says.
func (r *Row) readReport(node corev1.Node) (published.Report, bool) {
	for _, c := range node.Status.Conditions {
		if c.Type == published.Condition {
			r.Since, r.Reported = c.LastTransitionTime.UTC(), c.LastHeartbeatTime.UTC()
		}
	}
	report, err := published.DecodeReport(node.Annotations[published.ReportAnnotation])
	if err != nil {
		return published.Report{}, false
	}
	r.Reason, r.Message, r.Agent, r.Applied, r.Repaired = string(report.State), report.Message, report.Program, report.Applied, report.Repaired
	r.Impact, r.Missing, r.RebootPending = report.Impact, report.Missing, report.RebootPending
	return report, true
}

// isSilent reports whether the kubelet lives and the agent does not.
func isSilent(node corev1.Node, last, now time.Time) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !last.IsZero() && now.Sub(last) > published.SilentAfter
}

// judge is for a report about the published bundle.
func (r *Row) judge(report published.Report) {
	switch report.State {
	case published.StateUnpublished:
		r.State = StateStale
	case published.StateApplied:
		r.State = StateCurrent
	case published.StateApplying:
		r.State = StateApplying
	case published.StateNeedsPermission:
		r.State, r.Fix = StateWaiting, "the operator drains the node before it permits this"
	case published.StatePayloadMissing:
		r.State, r.Fix = StateWaiting, "the operator copies the executables; or run wmco apply --host with --payload"
	case published.StateRebootPending:
		r.State, r.Fix = StateWaiting, "reboot the host"
	case published.StateRolledBack:
		r.State, r.Fix = StateFailed, "correct what the message names; another bundle is tried at once, the same one after: oc annotate --overwrite node "+r.Node+" "+published.RetryAnnotation+"=\"$(date)\""
	case published.StateFailed:
		r.State, r.Fix = StateFailed, "it is tried again; the log of the node agent has the details"
	}
}
