package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// keepNode registers the Node and reports until the context ends.
func (k *kubelet) keepNode(ctx context.Context) {
	if *k.config.RegisterNode && !k.registerNode(ctx) {
		return
	}
	r := &reporter{kubelet: k}
	var parts sync.WaitGroup
	parts.Go(func() { k.watchOwn(ctx, r) })
	parts.Go(func() { r.run(ctx) })
	parts.Go(func() { k.keepLease(ctx) })
	parts.Go(func() { k.runPods(ctx) })
	parts.Wait()
}

// lastRegister is the longest pause between two attempts.
const lastRegister = 7 * time.Second

// registerNode follows registerWithAPIServer: it is tried until it succeeds, and reports whether it did.
func (k *kubelet) registerNode(ctx context.Context) bool {
	pause := k.Times.Register
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		err := k.tryRegister(ctx)
		if err == nil {
			k.Log.Info("registered the Node", "node", k.name)
			return true
		}
		k.Log.Warn("registering the Node", "error", err)
		pause = min(2*pause, lastRegister)
	}
}

func (k *kubelet) tryRegister(ctx context.Context) error {
	if k.certificate.Current() == nil {
		// The real one asks nevertheless, and is refused.
		return fmt.Errorf("creating the Node %s: there is no client certificate yet", k.name)
	}
	initial, err := k.initialNode(ctx)
	if err != nil {
		return err
	}
	_, err = k.core.Nodes().Create(ctx, initial, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return err
	}
	existing, err := k.core.Nodes().Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed := existing.DeepCopy()
	for _, name := range []string{
		corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelWindowsBuild, labelOldOS,
		labelOldArch,
	} {
		metav1.SetMetaDataLabel(&changed.ObjectMeta, name, initial.Labels[name])
	}
	return k.patchStatus(ctx, existing, changed)
}

// patchStatus sends the difference between two states of the Node to its status.
func (k *kubelet) patchStatus(ctx context.Context, from, to *corev1.Node) error {
	patch, err := nodePatch(from, to)
	if err != nil || string(patch) == "{}" {
		return err
	}
	_, err = k.core.Nodes().Patch(ctx, k.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// nodePatch replaces addresses as a whole, because two may have one type.
func nodePatch(from, to *corev1.Node) ([]byte, error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	same := to.DeepCopy()
	same.Status.Addresses = from.Status.Addresses
	after, err := json.Marshal(same)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil || apiequality.Semantic.DeepEqual(from.Status.Addresses, to.Status.Addresses) {
		return patch, err
	}
	var all map[string]any
	if err := json.Unmarshal(patch, &all); err != nil {
		return nil, err
	}
	status, ok := all["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		all["status"] = status
	}
	list := []any{map[string]string{"$patch": "replace"}}
	for _, a := range to.Status.Addresses {
		list = append(list, a)
	}
	status["addresses"] = list
	return json.Marshal(all)
}

// reporter compares the Node with the machine and reports what differs, as syncNodeStatus does.
type reporter struct {
	*kubelet
	// mu guards node, which the watch writes: nil before it is known.
	mu   sync.Mutex
	node *corev1.Node
	// sent is when the last report was, wasReady whether the Node was ever Ready.
	sent     time.Time
	wasReady bool
}

func (r *reporter) set(n *corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = n
}

func (r *reporter) latest() *corev1.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node
}

func (r *reporter) run(ctx context.Context) {
	every(ctx, r.pause, func() {
		node := r.latest()
		if node == nil {
			return
		}
		if err := r.reportStatus(ctx, node); err != nil && ctx.Err() == nil {
			r.Log.Warn("updating the status of the Node", "error", err)
		}
	})
}

// pause is short before the Node is Ready for the first time.
func (r *reporter) pause() time.Duration {
	if r.wasReady {
		return r.Times.Status
	}
	return min(r.Times.Fast, r.Times.Status)
}

func (r *reporter) reportStatus(ctx context.Context, node *corev1.Node) error {
	facts, err := r.Host.Facts(ctx)
	if err != nil {
		return err
	}
	now := node.DeepCopy()
	r.setStatus(ctx, now, facts)
	r.wasReady = r.wasReady || isReady(now)
	if !changed(node, now) && time.Since(r.sent) < r.Times.Report {
		return nil
	}
	if err := r.patchStatus(ctx, node, now); err != nil {
		return err
	}
	r.sent = time.Now()
	return nil
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// changed reports whether something differs besides the times of heartbeats.
func changed(a, b *corev1.Node) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, n := range []*corev1.Node{a, b} {
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
	return !apiequality.Semantic.DeepEqual(a, b)
}

// watchOwn keeps the reporter's Node current. After its deletion, the last one is compared with: it is not registered
// again.
func (k *kubelet) watchOwn(ctx context.Context, r *reporter) {
	own := fields.OneTermEqualSelector(metav1.ObjectNameField, k.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = own
			return k.core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = own
			return k.core.Nodes().Watch(ctx, o)
		},
	}
	tell := func(o any) {
		if n, ok := o.(*corev1.Node); ok {
			r.set(n)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Node{}, Transform: withoutManagedFields,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: func(any) { r.set(nil) }},
	})
	controller.RunWithContext(ctx)
}

func withoutManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}
