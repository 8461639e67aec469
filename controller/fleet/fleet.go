// Package fleet computes the state of each Windows node and of the rollout from cluster objects alone.
//
//	Nodes (annotations, conditions) --Read--> a row for each node: desired, applied, state, since when, why, what to do
//	WindowsNodesStatus ----------------|      conditions: the operator's report about all of them
//	settings (ConfigMap) --------------'      rollout: how many nodes are updated, which are being updated, what the others wait for
//
// It asks no node and reads no Secret.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// ReasonWaitingForAdoption is that of a node that another operator has joined. Nothing is published for it.
const ReasonWaitingForAdoption = "WaitingForAdoption"

// ReasonAdopting is that of a node of another operator whose host was asked what adopting it changes, and which waits
// for its turn.
const ReasonAdopting = "Adopting"

// ReasonNewerOperator is that of a node whose desired bundle has a form that this program does not know, as a newer
// operator writes it.
const ReasonNewerOperator = "NewerOperator"

// ReasonDiskFull is that of a node whose agent waits for room on drive C:.
const ReasonDiskFull = "DiskFull"

// Row is one node.
type Row struct {
	Node  string          `json:"node"`
	State nodestate.State `json:"state"`
	// Ready is the condition Ready of the Node: True, False or Unknown; empty for an object that has none, and where
	// only Of was asked.
	Ready   corev1.ConditionStatus `json:"ready,omitempty"`
	Stage   bundle.Stage           `json:"stage,omitempty"`
	Desired bundle.Digest          `json:"desired,omitempty"`
	Applied bundle.Digest          `json:"applied,omitempty"`
	// Since is when the condition of the node agent last changed, zero where there is none.
	Since time.Time `json:"since,omitzero"`
	// Reason is the state of the agent's report, Message its text, and Fix what to do.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Fix     string `json:"fix,omitempty"`
	// Log is the end of the log of the service because of which the published bundle was rolled back.
	Log bundle.LogTail `json:"log,omitzero"`
	// MaxImpact is the impact allowed for the published bundle, Impact what the node would need where that is more.
	MaxImpact bundle.Impact `json:"maxImpact,omitempty"`
	Impact    bundle.Impact `json:"impact,omitempty"`
	// Missing are executables that are not on the host, RebootPending what takes effect with its next boot.
	Missing       []string         `json:"missing,omitempty"`
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Repaired is how often something that had drifted was restored.
	Repaired int `json:"repaired,omitempty"`
	// Cause is why the published bundle was rolled back, Pulled how many bytes of layers the node has fetched for it.
	Cause  published.Cause `json:"cause,omitempty"`
	Pulled int             `json:"pulled,omitempty"`
	// Fault is whose fault it is that the node does not have the published bundle; empty where its agent does not say.
	Fault published.Fault `json:"fault,omitempty"`
	// Agent is the version of the node agent, Reported the time of its last sign of life.
	Agent    string    `json:"agent,omitempty"`
	Reported time.Time `json:"reported,omitzero"`
	// Turns are those of the node in rollouts, the latest first. Only gives them.
	Turns []plan.Turn `json:"turns,omitempty"`
}

// Fleet are the Windows nodes of a cluster.
type Fleet struct {
	// Operator is the state of the operator itself.
	Operator Operator `json:"operator,omitzero"`
	// Conditions are the operator's report about all nodes; none where the cluster does not serve the kind or the user
	// may not read it.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Nodes are sorted by name.
	Nodes []Row `json:"nodes"`
	// Hosts are those that are not nodes with their bundle, as the operator lists them: what cannot join, waits, or is
	// being removed. MoreHosts is how many it has left out.
	Hosts     []status.Host `json:"hosts,omitempty"`
	MoreHosts int           `json:"moreHosts,omitempty"`
	// Rollout is the progress of the last change.
	Rollout Rollout `json:"rollout,omitzero"`
	// turns and labels are those of all nodes, by name.
	turns  map[string][]plan.Turn
	labels map[string]labels.Set
	// partial reports whether nodes or hosts are left out.
	partial bool
}

// Read reads the Windows nodes and the operator's status in the namespace. Findings are about objects that cannot be
// read.
func Read(ctx context.Context, r objects.Reader, namespace string, now time.Time) (Fleet, bundle.Findings, error) {
	set, err := r.Read(ctx, Wants(namespace))
	if err != nil {
		return Fleet{}, nil, err
	}
	var all read
	for _, o := range set.Objects {
		if err := all.add(o); err != nil {
			return Fleet{}, nil, err
		}
	}
	slices.SortFunc(all.nodes, func(a, b windowsnode.Node) int { return strings.Compare(a.Name, b.Name) })
	f := Fleet{Conditions: all.fromOperator.Conditions, Nodes: []Row{}, Hosts: all.fromOperator.Hosts, turns: map[string][]plan.Turn{},
		labels: map[string]labels.Set{}}
	if n := all.fromOperator.HostsWaiting; n != nil {
		f.MoreHosts = max(0, *n-len(f.Hosts))
	}
	settings, note := all.decodeSettings()
	for _, node := range all.nodes {
		row := Of(node, windowsnode.SilenceByKubelet)
		if row.Reason == ReasonWaitingForAdoption && IsAdoptionWanted(settings, node.Annotations) {
			row.explainAdoption(node, f.Hosts)
		}
		row.Stage = stageOf(node)
		row.noteReady(node)
		f.Nodes = append(f.Nodes, row)
		f.labels[node.Name] = node.Labels
		f.turns[node.Name] = plan.TurnHistory(plan.ObserveNode(node, node.Desired, node.DesiredError))
	}
	for i := range f.Nodes {
		for _, refused := range all.fromOperator.Refused {
			if refused.Node == f.Nodes[i].Node {
				f.Nodes[i].Refuse(refused)
			}
		}
	}
	f.Rollout = rolling(all.nodes, PolicyAt(settings, now), f.Conditions, now)
	f.Rollout.Note = note
	f.Operator = operatorOf(all.lease, namespace, now)
	// A user who may read Nodes alone sees the nodes.
	var findings bundle.Findings
	for _, x := range set.Findings {
		switch {
		case x.Reason == reason.Forbidden && x.Object.Kind == "ConfigMap":
			f.Rollout.Note = "cannot read the settings, assuming the defaults: " + x.Message
		case x.Reason == reason.Forbidden && x.Object.Kind == "Lease":
			f.Operator.Note = "cannot tell whether the operator is running: " + x.Message
		case x.Reason != reason.Forbidden || x.Object.Kind == "Node":
			findings = append(findings, x)
		}
	}
	return f, findings, nil
}

// Wants are the objects that Read reads.
func Wants(namespace string) []objects.Want {
	return []objects.Want{
		WantNodes(), WantStatus(namespace), wantLease(namespace),
		{Version: "v1", Kind: "ConfigMap", Namespace: namespace, Names: []string{render.SettingsConfigMap}},
	}
}

// WantNodes are the Windows Nodes of the cluster.
func WantNodes() objects.Want {
	return objects.Want{Version: "v1", Kind: "Node",
		Labels: map[string]string{corev1.LabelOSStable: windowsnode.Windows}}
}

// DecodeNode decodes one of them.
func DecodeNode(o objects.Object) (windowsnode.Node, error) {
	var object corev1.Node
	if err := json.Unmarshal(o.JSON, &object); err != nil {
		return windowsnode.Node{}, fmt.Errorf("reading %s: %w", o.Ref, err)
	}
	return windowsnode.Decode(object), nil
}

// read is what was read.
type read struct {
	nodes        []windowsnode.Node
	fromOperator status.Status
	settings     corev1.ConfigMap
	lease        *coordinationv1.Lease
}

func (r *read) add(o objects.Object) (err error) {
	switch o.Kind {
	case status.Kind:
		r.fromOperator, err = status.Decode(o.JSON)
	case "Lease":
		if err = json.Unmarshal(o.JSON, &r.lease); err != nil {
			return fmt.Errorf("reading %s: %w", o.Ref, err)
		}
	case "ConfigMap":
		if err = json.Unmarshal(o.JSON, &r.settings); err != nil {
			return fmt.Errorf("reading %s: %w", o.Ref, err)
		}
	default:
		var node windowsnode.Node
		node, err = DecodeNode(o)
		r.nodes = append(r.nodes, node)
	}
	return err
}

// decodeSettings returns the settings, and a note where they are not those of the object.
func (r *read) decodeSettings() (render.Settings, string) {
	s, findings := render.DecodeSettings(r.settings.Data[render.SettingsKey],
		bundle.Ref{Kind: "ConfigMap", Namespace: r.settings.Namespace, Name: r.settings.Name})
	if findings.Refused() {
		return s, "cannot read the settings, assuming the defaults: " + findings[0].Message
	}
	return s, ""
}

// Only returns the fleet with the one node, or the one host that is no node, of a name or address. It has the turns of
// the node.
func (f Fleet) Only(name string) (Fleet, bool) {
	node := name
	hosts := slices.DeleteFunc(slices.Clone(f.Hosts), func(h status.Host) bool {
		return name != h.Name && name != h.Address && name != h.Node
	})
	if len(hosts) > 0 {
		node = cmp.Or(hosts[0].Node, name)
	}
	i := slices.IndexFunc(f.Nodes, func(r Row) bool { return r.Node == node })
	if i < 0 && len(hosts) == 0 {
		return Fleet{}, false
	}
	f.Hosts, f.MoreHosts, f.partial = hosts, 0, true
	rows := []Row{}
	if i >= 0 {
		row := f.Nodes[i]
		row.Turns = f.turns[node]
		rows = append(rows, row)
	}
	f.Nodes = rows
	f.Rollout.Nodes = slices.DeleteFunc(slices.Clone(f.Rollout.Nodes), func(s plan.Status) bool {
		return s.Node != node
	})
	return f, true
}

// Selected returns the fleet with the nodes that a selector of labels matches, and that are in one of the states; all
// where there is none. Hosts that are not nodes have no labels.
func (f Fleet) Selected(selector labels.Selector, states []nodestate.State) Fleet {
	f.Nodes = slices.DeleteFunc(slices.Clone(f.Nodes), func(r Row) bool {
		return !selector.Matches(f.labels[r.Node]) || len(states) > 0 && !slices.Contains(states, r.State)
	})
	kept := func(node string) bool {
		return slices.ContainsFunc(f.Nodes, func(r Row) bool { return r.Node == node })
	}
	f.Hosts = slices.DeleteFunc(slices.Clone(f.Hosts), func(h status.Host) bool {
		isAll := selector.Empty() && (len(states) == 0 || slices.Contains(states, h.State))
		return !isAll && !kept(h.Node)
	})
	f.Rollout.Nodes = slices.DeleteFunc(slices.Clone(f.Rollout.Nodes), func(s plan.Status) bool {
		return !kept(s.Node)
	})
	f.partial = f.partial || !selector.Empty() || len(states) > 0
	return f
}

// Names are those of all nodes, and the names and addresses of hosts that are no nodes.
func (f Fleet) Names() []string {
	var names []string
	for _, r := range f.Nodes {
		names = append(names, r.Node)
	}
	for _, h := range f.Hosts {
		names = append(names, h.Name, h.Address)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// WantStatus is the WindowsNodesStatus, for a reader.
func WantStatus(namespace string) objects.Want {
	return objects.Want{Group: status.Group, Version: status.Version, Kind: status.Kind, Namespace: namespace,
		Names: []string{status.Name}, Optional: true}
}
