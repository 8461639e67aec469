// Package drains drains nodes that have a slot, in the background.
package drains

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
)

// drainAgain is the pause between two rounds of evictions on one node.
const drainAgain = 5 * time.Second

// parallelDrains is how many nodes are drained at the same time. A round of evictions is short, and waits for nothing.
const parallelDrains = 4

// EventDrainBlocked is the reason of an Event about pods that keep a node from being drained.
const EventDrainBlocked = "DrainBlocked"

// Drains evicts the pods of nodes that have a slot. A call of Reconcile is one round for one node.
type Drains struct {
	Drainer drain.Drainer
	// Live asks the API server.
	Live client.Reader
	// Enqueue has Reconcile called for a node; SetupWithManager sets it. Changed has the rollout decided again.
	Enqueue func(ctx context.Context, node string)
	Changed func()
	Events  events.EventRecorder

	mu    sync.Mutex
	nodes map[string]*draining
}

// draining is the state of the pods of a node that is being drained.
type draining struct {
	taken time.Time
	// looked is false before the first round.
	looked bool
	left   drain.Left
}

// SetupWithManager has a node drained when its turn begins.
func (d *Drains) SetupWithManager(m base.Manager) error {
	begun := make(drainQueue, 1)
	d.Enqueue = begun.addNode
	c, err := m.NewController("drains", d, parallelDrains)
	if err != nil {
		return err
	}
	nodes := handler.TypedFuncs[string, reconcile.Request]{GenericFunc: func(_ context.Context,
		e event.TypedGenericEvent[string], q base.Queue) {
		q.Add(base.RequestsFor([]string{e.Object})[0])
	}}
	return c.Watch(source.TypedChannel(chan event.TypedGenericEvent[string](begun), nodes))
}

// drainQueue are the nodes whose pods are to be evicted.
type drainQueue chan event.TypedGenericEvent[string]

// addNode adds a node. When the operator ends, nothing takes nodes from the queue any longer, or waits for that.
func (q drainQueue) addNode(ctx context.Context, node string) {
	select {
	case q <- event.TypedGenericEvent[string]{Object: node}:
	case <-ctx.Done():
	}
}

// KeepSlots forgets what was found on nodes whose turn is over.
func (d *Drains) KeepSlots(held map[string]time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, n := range d.nodes {
		if taken, ok := held[name]; !ok || !taken.Equal(n.taken) {
			delete(d.nodes, name)
		}
	}
}

// DrainNode has the pods of a node evicted, in the background, until none is left or the turn is over.
func (d *Drains) DrainNode(ctx context.Context, node string, taken time.Time) {
	d.mu.Lock()
	_, begun := d.nodes[node]
	if !begun {
		if d.nodes == nil {
			d.nodes = map[string]*draining{}
		}
		d.nodes[node] = &draining{taken: taken}
	}
	d.mu.Unlock()
	if !begun {
		d.Enqueue(ctx, node)
	}
}

// RepeatDrain has a node drained again.
func (d *Drains) RepeatDrain(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nodes, node)
}

// NoteResult notes on a node what the last round has found in this turn.
func (d *Drains) NoteResult(node *plan.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[node.Name]
	if !ok || !n.looked || !n.taken.Equal(node.State.Slot.Taken) {
		return
	}
	node.Drained, node.DrainBlocked, node.DrainForbidden = IsDrained(n.left, node.Ready), "", false
	if !node.Drained {
		node.DrainBlocked, node.DrainForbidden = n.left.String(), len(n.left.Blocked) > 0
	}
}

// IsDrained reports whether nothing is left to wait for. Where the kubelet does not work, pods that were told to end
// cannot do so.
func IsDrained(left drain.Left, ready bool) bool {
	return left.IsEmpty() || !ready && left.Ending == len(left.Pods)
}

// Reconcile evicts every pod of a node once, if it is still its turn.
func (d *Drains) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name := req.Name
	d.mu.Lock()
	n, ok := d.nodes[name]
	d.mu.Unlock()
	if !ok {
		return reconcile.Result{}, nil
	}
	var object corev1.Node
	if err := d.Live.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	node := windowsnode.Decode(object)
	if claim := node.Rollout.Slot; !claim.Held || !claim.Taken.Equal(n.taken) || !node.Spec.Unschedulable {
		d.RepeatDrain(name)
		d.Changed()
		return reconcile.Result{}, nil // the rollout decides about it
	}
	left, err := d.Drainer.EvictOnce(ctx, name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("draining node %s: %w", name, err)
	}
	d.noteRound(n, node, left)
	if IsDrained(left, node.IsReady()) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: drainAgain}, nil
}

// noteRound notes the result of a round, and logs the differences.
func (d *Drains) noteRound(n *draining, node windowsnode.Node, left drain.Left) {
	d.mu.Lock()
	news := !n.looked || n.left.String() != left.String() || n.left.Ending != left.Ending ||
		n.left.IsEmpty() != left.IsEmpty()
	blocked := len(left.Blocked) > 0 && n.left.String() != left.String()
	n.looked, n.left = true, left
	d.mu.Unlock()
	if blocked {
		d.Events.Eventf(node.Reference(), nil, corev1.EventTypeWarning, EventDrainBlocked, "Drain", "%s",
			published.Shorten("the node cannot be drained: "+left.String()))
	}
	if news {
		d.Changed()
	}
}
