// Package olm tells the Operator Lifecycle Manager whether the operator may be replaced: OLM does that only while the
// OperatorCondition does not say that it is not safe (docs.okd.io, Communicating Operator conditions to Operator
// Lifecycle Manager).
package olm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/fleet"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// ConditionVariable is the name of the OperatorCondition in the environment, where OLM has installed the operator.
const ConditionVariable = "OPERATOR_CONDITION_NAME"

// The condition and its reasons, those of the existing operator.
const (
	ConditionUpgradeable = "Upgradeable"
	ReasonSafe           = "upgradeIsSafe"
	ReasonNotSafe        = "upgradeIsNotSafe"
)

const (
	// upgradeableSettle gathers changes of many Nodes.
	upgradeableSettle = 2 * time.Second
	// recheckUpgradeable is how often nodes are looked at although none was seen to change: that one is lost is a
	// matter of time.
	recheckUpgradeable = time.Minute
	// recheckChanging is the same while nodes are being changed: the rollout finds out that nothing is left after the
	// last Node has changed.
	recheckChanging = 10 * time.Second
)

func kindOperatorCondition() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}
}

// conditionOf reports whether nodes are being changed; isChanging reports whether the rollout is changing one. Nodes that
// are not, because they have failed, cannot be reached or are paused, do not hold up an upgrade, which may be what they
// need.
func conditionOf(nodes []windowsnode.Node, silence windowsnode.Silence,
	isChanging func(node string) bool) metav1.Condition {
	var moving []string
	for _, n := range nodes {
		what := movementOf(n, silence)
		if what == "" && isChanging(n.Name) && canBeChanged(n, silence) {
			what = "is being updated"
		}
		if what != "" {
			moving = append(moving, n.Name+" "+what)
		}
	}
	slices.Sort(moving)
	if len(moving) == 0 {
		return metav1.Condition{Type: ConditionUpgradeable, Status: metav1.ConditionTrue, Reason: ReasonSafe,
			Message: "no Windows node is being changed"}
	}
	const most = 5
	text := bundle.JoinFirst(moving, most, ", ", bundle.AndMore)
	return metav1.Condition{
		Type: ConditionUpgradeable, Status: metav1.ConditionFalse, Reason: ReasonNotSafe,
		Message: published.Shorten(bundle.Count(len(moving), "Windows node") + " being changed: " + text +
			"; the upgrade waits until that has ended"),
	}
}

// withKubelets adds what keeps the cluster from its next update. It does not keep the operator from its own: OLM holds
// back the operator alone by this condition, and a newer operator may be what these nodes wait for.
func withKubelets(c metav1.Condition, kubelets string) metav1.Condition {
	if kubelets != "" {
		c.Message = published.Shorten(c.Message + "; " + kubelets)
	}
	return c
}

// isStuck reports whether nothing is done with a node until a person helps it.
func isStuck(n windowsnode.Node, silence windowsnode.Silence) bool {
	row := fleet.Of(n, silence)
	// An agent that has not reported yet has its time for that.
	silent := row.State == nodestate.NotReporting && (!row.Reported.IsZero() || silence(n) > published.SilentAfter)
	return n.IsLost() || n.IsPaused() || row.State == nodestate.Degraded || silent
}

// canBeChanged reports whether a node that is being updated continues without help. One that lacks executables may take long, and
// an upgrade brings others.
func canBeChanged(n windowsnode.Node, silence windowsnode.Silence) bool {
	return !isStuck(n, silence) && n.Report.State != published.StatePayloadMissing
}

// movementOf returns the current work on a node by its annotations, empty if there is none.
func movementOf(n windowsnode.Node, silence windowsnode.Silence) string {
	row := fleet.Of(n, silence)
	switch {
	case isStuck(n, silence):
		return ""
	case n.Life() == windowsnode.LifeJoining:
		return "is joining"
	case n.Life() == windowsnode.LifeRemoving:
		return "is being removed"
	case n.Rollout.Slot.Held:
		return "is being updated by the rollout"
	case row.State == nodestate.Updating:
		return "is applying its bundle"
	case isObserved(n):
		return "is a settling canary"
	}
	return ""
}

// isObserved reports whether a canary has its bundle, and the others wait until it has settled: the next one begins
// within minutes.
func isObserved(n windowsnode.Node) bool {
	t := n.Rollout.Turn
	return t.Canary && t.Confirmed.IsZero() && n.Rollout.Failed == "" && n.DesiredError == nil &&
		t.Bundle == n.Desired.Bundle
}

// Upgradeable tells OLM whether the operator may be replaced now.
type Upgradeable struct {
	// Nodes is the cache of Nodes, Decoded what was decoded of them, Live reads without a cache.
	Nodes   client.Reader
	Decoded *nodelist.Cache
	Live    client.Reader
	Client  client.Client
	// Namespace and Name are those of the OperatorCondition.
	Namespace, Name string
	Now             func() time.Time
	Silence         windowsnode.Silence
	Rollout         Rollout
}

// Rollout is what the rollout has found out last; status.Upgrade is.
type Rollout interface {
	// IsChanging reports whether a node has its turn, or its next step is due: a canary has proved well, and the others
	// have not begun yet.
	IsChanging(node string) bool
	// KubeletProblem names the Windows nodes that keep the cluster from its next minor update, empty if none does.
	KubeletProblem() string
}

// SetupWithManager watches the Windows Nodes.
func (u *Upgradeable) SetupWithManager(m base.Manager) error {
	c, err := m.NewController("olm", u, 1)
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(m.GetCache(), &corev1.Node{}, base.EnqueueAllAfter[*corev1.Node](upgradeableSettle),
		base.NodeChanges())); err != nil {
		return err
	}
	return c.Watch(base.AtStart())
}

// Reconcile writes the condition, where it differs.
func (u *Upgradeable) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes, err := u.Decoded.ListCached(ctx, u.Nodes)
	if err != nil {
		return reconcile.Result{}, err
	}
	c := conditionOf(nodes, u.Silence, u.Rollout.IsChanging)
	if err := u.writeCondition(ctx, withKubelets(c, u.Rollout.KubeletProblem())); err != nil {
		return reconcile.Result{}, err
	}
	if c.Status == metav1.ConditionFalse {
		return reconcile.Result{RequeueAfter: recheckChanging}, nil
	}
	return reconcile.Result{RequeueAfter: recheckUpgradeable}, nil
}

// writeCondition keeps the conditions of others in the list. OLM copies it to the status, and reads that.
func (u *Upgradeable) writeCondition(ctx context.Context, c metav1.Condition) error {
	o := base.NewObject(kindOperatorCondition())
	if err := u.Live.Get(ctx, client.ObjectKey{Namespace: u.Namespace, Name: u.Name}, o); err != nil {
		return fmt.Errorf("reading OperatorCondition %s: %w", u.Name, err)
	}
	var have struct {
		Spec struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &have); err != nil {
		return fmt.Errorf("reading OperatorCondition %s: %w", u.Name, err)
	}
	c.LastTransitionTime = metav1.NewTime(u.Now())
	if !meta.SetStatusCondition(&have.Spec.Conditions, c) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()},
		"spec": have.Spec})
	if err != nil {
		return err
	}
	if err := u.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing OperatorCondition %s: %w", u.Name, err)
	}
	return nil
}
