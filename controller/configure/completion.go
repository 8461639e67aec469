package configure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/controller/keys/username"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// keepJoined is for a host whose Node has joined.
func (h Host) keepJoined(ctx context.Context, node *corev1.Node) (Progress, error) {
	if r, ok := h.Wanted.Records.RecordByID(gather.HostID(h.Node)); ok && r.Origin == record.OriginAdopted &&
		!r.Adopting && lacksMarks(h.Node, node) {
		if err := h.MarkAdopted(ctx, node); err != nil {
			return Progress{}, err
		}
	}
	if windowsnode.HasTaint(node, windowsnode.RemovingTaint) {
		return h.takeBackRemoval(ctx, node, Marks{Removing: new(false)})
	}
	return Progress{State: StateJoined, Reason: ReasonJoined, Node: node.Name}, nil
}

// completeNode is for a host whose Node has yet to join.
func (h Host) completeNode(ctx context.Context, node windowsnode.Node) (Progress, error) {
	if !node.DeletionTimestamp.IsZero() {
		message := "the Node is being deleted, and waits for its finalizers " + strings.Join(node.Finalizers, ", ")
		return Progress{State: StateWaiting, Reason: ReasonCompleting, Message: message,
			Fix: "check the controllers of these finalizers", Node: node.Name, Again: AgainSoon}, nil
	}
	row := fleet.Of(node, h.Silence)
	silent := row.Reported.IsZero() || row.State == nodestate.NotReporting
	if node.Life() == windowsnode.LifeRemoving {
		m := Marks{Annotations: map[string]string{JoiningAnnotation: ""}, Cordon: new(false)}
		if !node.IsReady() || silent {
			m = Marks{Annotations: map[string]string{VersionAnnotation: ""}}
		}
		return h.takeBackRemoval(ctx, node.Node, m)
	}
	if done, err := h.labelAndCordonNode(ctx, node.Node); done || err != nil {
		return Progress{State: StateJoining, Reason: ReasonCompleting,
			Message: "the Node is labelled, and cordoned until it has joined", Node: node.Name, Again: AgainSoon}, err
	}
	// An agent cannot get executables alone: those of another operator, or of another version of the cluster, come
	// over SSH.
	if silent || node.LacksPayload() {
		return h.applyHostBundle(ctx), nil
	}
	wanted, missing, err := h.findMissing(node, row)
	if err != nil || missing != "" {
		p := Progress{State: StateJoining, Reason: ReasonCompleting,
			Message: "waiting for the node: " + missing, Node: node.Name,
			Again: AgainSoon}
		if row.State == nodestate.Degraded || row.Fault == published.FaultDisk {
			h.resumeInterrupted(ctx)
			p.State, p.Reason, p.Message, p.Fix, p.Log = StateFailed, row.Reason, row.Message, row.Fix, row.Log
		}
		return p, err
	}
	if h.awaitsImages(node, wanted) {
		return pullingImages(node), nil
	}
	if h.MachineName != "" {
		if err := h.BeforeMachineJoins(ctx, h.MachineName); err != nil {
			return Progress{}, err
		}
	}
	if err := h.uncordonAndMark(ctx, node.Node); err != nil {
		return Progress{}, err
	}
	h.Counters.CountNode(string(h.Backing), h.Now().Sub(node.CreationTimestamp.Time))
	return Progress{State: StateJoined, Reason: ReasonJoined, Message: describeJoined(node), Node: node.Name,
		Finished: true}, nil
}

// takeBackRemoval ends a removal whose entry was added again. A node that works counts as joined, and gets changes with
// the rollout. Any other one joins again, because its host may have been cleaned up.
func (h Host) takeBackRemoval(ctx context.Context, node *corev1.Node, m Marks) (Progress, error) {
	_, err := h.WriteMarks(ctx, node, m)
	return Progress{State: StateJoining, Reason: ReasonCompleting,
		Message: "the removal is canceled, because the host has an entry again", Node: node.Name, Again: AgainSoon}, err
}

// findMissing returns the wanted bundle of a joining node, and what the node waits for. The text is empty if the node has
// this bundle, its network is set up, and it is Ready.
func (h Host) findMissing(node windowsnode.Node, row fleet.Row) (bundle.Bundle, string, error) {
	list, _, err := h.Wanted.RenderBundles([]render.Node{h.Node})
	if err != nil {
		return bundle.Bundle{}, "", err
	}
	if len(list) == 0 {
		return bundle.Bundle{}, "its bundle is refused", nil
	}
	wanted := list[0].Bundle
	isPending := slices.ContainsFunc(list[0].Own, func(f bundle.Finding) bool {
		return f.Reason == reason.NetworkPending
	})
	switch {
	case isPending && h.Subnet == "":
		return wanted.Bundle, "the cluster network has not assigned its subnet yet", nil
	case row.State != nodestate.Updated:
		return wanted.Bundle, "its bundle is not applied yet (" + string(row.State) + ")", nil
	case !node.IsReady():
		return wanted.Bundle, "its kubelet is not Ready yet", nil
	case isPending:
		return wanted.Bundle, "its overlay network is being set up", nil
	case row.Applied != wanted.Digest:
		return wanted.Bundle, "its newest bundle is about to be published", nil
	}
	return wanted.Bundle, "", nil
}

// labelAndCordonNode labels and cordons a new Node. It reports whether it wrote anything.
func (h Host) labelAndCordonNode(ctx context.Context, node *corev1.Node) (bool, error) {
	m, err := h.hostMarks(ctx, node)
	if err != nil || m.Annotations == nil {
		return false, err
	}
	before, err := h.RejoiningNodes().KeptNode(ctx, node, h.Address)
	if err != nil {
		return false, err
	}
	before.restoreOnto(&m, node)
	// A node whose agent has reported, and that this operator did not join, was joined by hand (wmco apply) and has pods
	// already. The cordon of an administrator stays.
	interrupted := h.isUpgradeInterrupted(node)
	if !before.Cordoned && (node.Annotations[published.ReportAnnotation] == "" || h.joinedHere(node)) &&
		(!node.Spec.Unschedulable || interrupted) {
		m.Annotations[JoiningAnnotation], m.Cordon = ValueTrue, new(true)
	}
	if interrupted {
		m.Labels[published.UpgradingLabel] = ""
	}
	if done, err := h.WriteMarks(ctx, node, m); done || err != nil || before.Name == "" {
		return done, err
	}
	return false, h.RejoiningNodes().ForgetNode(ctx, node.Name)
}

// joinedHere reports whether this operator has made the host a node, by its record, and the Node is not marked yet.
func (h Host) joinedHere(node *corev1.Node) bool {
	r, ok := h.Wanted.Records.RecordByID(gather.HostID(h.Node))
	return ok && r.Origin == record.OriginJoined && node.Annotations[JoiningAnnotation] == ""
}

// hostMarks returns the marks that every node has. There are none while the private key cannot be used.
func (h Host) hostMarks(ctx context.Context, node *corev1.Node) (Marks, error) {
	m := Marks{Labels: map[string]string{RoleLabel: ""}, Annotations: map[string]string{}}
	key, findings, err := h.Login.PrivateKey(ctx)
	if err != nil || findings.Refused() {
		return Marks{}, err
	}
	m.Annotations[keys.HashAnnotation] = key.PublicKeyHash()
	w, err := h.ApplyRequest()
	if err != nil {
		return Marks{}, err
	}
	if pin := h.Login.PinnedKey(ctx, w.Target); pin != nil {
		m.Annotations[hosts.PinAnnotation], m.Annotations[hosts.PinTypeAnnotation] = hosts.EncodeKey(pin), pin.Type()
	}
	if h.Backing == render.BackingInstance {
		m.Labels[InstanceLabel], m.Annotations[InstanceAnnotation] = ValueTrue, h.Address
		if have, err := username.DecryptName(node.Annotations[UsernameAnnotation], key.SecretText()); err != nil ||
			have != h.Username {
			text, err := username.EncryptName(reader(h.Random), h.Username, key.SecretText())
			if err != nil {
				return Marks{}, fmt.Errorf("encrypting the user name of %s: %w", h.Address, err)
			}
			m.Annotations[UsernameAnnotation] = text
		}
	}
	return m, nil
}

// MarkAdopted writes the marks of joined nodes to the Node of an adopted host, and removes the annotation adopt.
func (h Host) MarkAdopted(ctx context.Context, node *corev1.Node) error {
	m, err := h.hostMarks(ctx, node)
	if err != nil {
		return err
	}
	if m.Annotations == nil {
		m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	}
	m.Annotations[published.AdoptAnnotation] = ""
	if h.isUpgradeInterrupted(node) {
		m.Labels[published.UpgradingLabel], m.Cordon = "", new(false)
	}
	_, err = h.WriteMarks(ctx, node, m)
	return err
}

// isUpgradeInterrupted reports whether the existing operator cordoned the Node for an upgrade, and was removed before its
// end. It labels the node, cordons and drains it, and uncordons it at the end
// (openshift/windows-machine-config-operator, pkg/nodeconfig). This operator writes the label only on nodes that have
// its desired version.
func (h Host) isUpgradeInterrupted(node *corev1.Node) bool {
	return node.Spec.Unschedulable && node.Labels[published.UpgradingLabel] == ValueTrue &&
		node.Annotations[DesiredVersionAnnotation] != h.Version &&
		node.Annotations[published.CordonAnnotation] == ""
}

// lacksMarks reports whether the Node of an adopted host lacks an annotation that this operator always writes.
func lacksMarks(n render.Node, node *corev1.Node) bool {
	return node.Annotations[hosts.PinAnnotation] == "" || node.Annotations[keys.HashAnnotation] == "" ||
		n.Backing == render.BackingInstance && node.Annotations[InstanceAnnotation] == ""
}

// reader makes a reader of a function.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// uncordonAndMark lifts the cordon, if it is the operator's, and writes the version last.
func (h Host) uncordonAndMark(ctx context.Context, node *corev1.Node) error {
	m := Marks{Annotations: map[string]string{VersionAnnotation: h.Version, DesiredVersionAnnotation: h.Version,
		JoiningAnnotation: ""}}
	if node.Annotations[JoiningAnnotation] != "" {
		m.Cordon = new(false)
	}
	_, err := h.WriteMarks(ctx, node, m)
	return err
}

// WriteMarks patches the marks that differ from node, which the caller has read. It reports whether it wrote anything.
func (j *Joiner) WriteMarks(ctx context.Context, node *corev1.Node, m Marks) (bool, error) {
	patch, err := m.mergePatch(node)
	if err != nil || patch == nil {
		return false, err
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	if err := j.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("writing labels and annotations of Node %s: %w", node.Name, err)
	}
	return true, nil
}
