package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/fleet"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// OLM replaces the operator by a newer version only while its OperatorCondition does not say that this is not safe
// (docs.okd.io, Communicating Operator conditions to Operator Lifecycle Manager).

// conditionVariable is the name of the OperatorCondition in the environment, where OLM has installed the operator.
const conditionVariable = "OPERATOR_CONDITION_NAME"

// The condition and its reasons, those of the existing operator.
const (
	conditionUpgradeable = "Upgradeable"
	reasonSafe           = "upgradeIsSafe"
	reasonNotSafe        = "upgradeIsNotSafe"
)

const (
	// upgradeableSettle gathers changes of many Nodes.
	upgradeableSettle = 2 * time.Second
	// recheckUpgradeable is how often nodes are looked at although none was seen to change: that one is lost is a matter of time.
	recheckUpgradeable = time.Minute
)

func kindOperatorCondition() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}
}

// upgradeable says whether nodes are being changed. Nodes that are not, because they have failed, cannot be reached or are paused, keep
// nobody from an upgrade, which may be what they need.
func upgradeable(nodes []windowsnode.Node, silence windowsnode.Silence) metav1.Condition {
	var moving []string
	for _, n := range nodes {
		if what := movement(n, silence); what != "" {
			moving = append(moving, n.Name+" "+what)
		}
	}
	slices.Sort(moving)
	if len(moving) == 0 {
		return metav1.Condition{Type: conditionUpgradeable, Status: metav1.ConditionTrue, Reason: reasonSafe, Message: "no Windows node is being changed"}
	}
	const most = 5
	text := bundle.JoinFirst(moving, most, ", ", bundle.AndMore)
	return metav1.Condition{
		Type: conditionUpgradeable, Status: metav1.ConditionFalse, Reason: reasonNotSafe,
		Message: published.Shorten(bundle.Count(len(moving), "Windows node") + " being changed: " + text + "; the upgrade waits until that has ended"),
	}
}

// movement says what is being done with a node, empty if nothing is.
func movement(n windowsnode.Node, silence windowsnode.Silence) string {
	if n.IsLost() || n.IsPaused() {
		return ""
	}
	row := fleet.Of(n, silence)
	switch {
	case row.State == fleet.StateFailed || row.State == fleet.StateSilent && !row.Reported.IsZero():
		return ""
	case n.IsJoining():
		return "joins"
	case n.IsBeingRemoved():
		return "is removed"
	case n.Rollout.Claim.Held:
		return "has its turn in the rollout"
	case row.State == fleet.StateApplying:
		return "applies its bundle"
	}
	return ""
}

// upgrades tells OLM whether the operator may be replaced now.
type upgrades struct {
	nodes           client.Reader
	decoded         *nodelist.Cache
	live            client.Reader
	client          client.Client
	namespace, name string
	now             func() time.Time
	silence         windowsnode.Silence
}

// addUpgrades does nothing where OLM gives the operator no OperatorCondition.
func addUpgrades(m base.Manager, o Options) error {
	name := o.Environment[conditionVariable]
	if name == "" {
		return nil
	}
	c, err := m.NewController("upgradeable", &upgrades{m.GetClient(), m.Decoded, m.GetAPIReader(), m.GetClient(), o.Namespace, name, o.Now, o.Silence}, 1)
	if err != nil {
		return err
	}
	again := handler.TypedFuncs[base.Object, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[base.Object], q base.Queue) {
			q.AddAfter(everything, upgradeableSettle)
		},
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[base.Object], q base.Queue) {
			q.AddAfter(everything, upgradeableSettle)
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[base.Object], q base.Queue) {
			q.AddAfter(everything, upgradeableSettle)
		},
	}
	if err := c.Watch(source.Kind(m.GetCache(), base.NewObject(base.NodeKind()), again, base.NodeChanges())); err != nil {
		return err
	}
	return c.Watch(base.AtStart())
}

// Reconcile writes the condition, where it says something else.
func (u *upgrades) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes, err := u.decoded.ListCached(ctx, u.nodes)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := u.write(ctx, upgradeable(nodes, u.silence)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: recheckUpgradeable}, nil
}

// write keeps the conditions of others in the list. OLM copies it to the status, and reads that.
func (u *upgrades) write(ctx context.Context, c metav1.Condition) error {
	o := base.NewObject(kindOperatorCondition())
	if err := u.live.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: u.name}, o); err != nil {
		return fmt.Errorf("reading OperatorCondition %s: %w", u.name, err)
	}
	var have struct {
		Spec struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &have); err != nil {
		return fmt.Errorf("reading OperatorCondition %s: %w", u.name, err)
	}
	c.LastTransitionTime = metav1.NewTime(u.now())
	if !meta.SetStatusCondition(&have.Spec.Conditions, c) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "spec": have.Spec})
	if err != nil {
		return err
	}
	if err := u.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing OperatorCondition %s: %w", u.name, err)
	}
	return nil
}
