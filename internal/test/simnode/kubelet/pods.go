package kubelet

import (
	"context"
	"encoding/json"
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
	"k8s.io/client-go/util/workqueue"
)

// Annotations of pods that say how they behave here; their values are durations.
const (
	// ReadyAfterAnnotation is how long the pod takes to become Ready.
	ReadyAfterAnnotation = "simnode.wmco.test/ready-after"
	// EndsAfterAnnotation is how long it takes to end. It is killed at the end of its grace period.
	EndsAfterAnnotation = "simnode.wmco.test/ends-after"
)

// runPods runs the pods that are bound to the Node.
func (k *kubelet) runPods(ctx context.Context) {
	queue := workqueue.NewTypedDelayingQueue[string]()
	add := func(o any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			queue.Add(name)
		}
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: k.ownPods(), ObjectType: &corev1.Pod{}, Transform: withoutManagedFields,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add},
	})
	var parts sync.WaitGroup
	parts.Go(func() { controller.RunWithContext(ctx) })
	parts.Go(func() {
		<-ctx.Done()
		queue.ShutDown()
	})
	for cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		k.Containers.keepOnly(uids(store))
		break
	}
	for {
		name, ended := queue.Get()
		if ended {
			break
		}
		again, err := k.syncPod(ctx, store, name)
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("running a pod", "pod", name, "error", err)
			again = time.Second
		}
		queue.Done(name)
		if again > 0 {
			queue.AddAfter(name, again)
		}
	}
	parts.Wait()
}

// ownPods asks for the pods that are bound to the Node: all that a node may see.
func (k *kubelet) ownPods() *cache.ListWatch {
	own := fields.OneTermEqualSelector("spec.nodeName", k.name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = own
			return k.core.Pods(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = own
			return k.core.Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}
}

func uids(store cache.Store) map[types.UID]bool {
	all := map[types.UID]bool{}
	for _, o := range store.List() {
		if p, ok := o.(*corev1.Pod); ok {
			all[p.UID] = true
		}
	}
	return all
}

// syncPod does the next step of a pod, and returns when there is more; zero is never.
func (k *kubelet) syncPod(ctx context.Context, store cache.Store, name string) (time.Duration, error) {
	o, ok, err := store.GetByKey(name)
	if err != nil {
		return 0, err
	}
	p, is := o.(*corev1.Pod)
	switch {
	case !ok || !is:
		k.Containers.keepOnly(uids(store)) // removed by force
		return 0, nil
	case p.DeletionTimestamp != nil:
		return k.endPod(ctx, p)
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return 0, nil
	}
	return k.startPod(ctx, p)
}

// runtimePause is the time between two looks at a container runtime that does not run.
const runtimePause = time.Second

// startPod makes and starts a pod, and reports where it is.
func (k *kubelet) startPod(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
	if !k.canRun(ctx, p) {
		return runtimePause, nil
	}
	now, takes := time.Now(), duration(p, ReadyAfterAnnotation, k.Times.PodStart)
	run := k.Containers.change(p.UID, func(run *pod) {
		if run.made.IsZero() {
			run.made = now
		}
		if run.started.IsZero() && now.Sub(run.made) >= takes {
			run.started = now
		}
	})
	status, err := k.podStatus(ctx, p, run)
	if err == nil {
		err = k.patchPod(ctx, p, status)
	}
	if run.started.IsZero() {
		return takes - now.Sub(run.made) + time.Millisecond, err
	}
	return 0, err
}

// canRun reports whether the runtime can make a sandbox for the pod.
func (k *kubelet) canRun(ctx context.Context, p *corev1.Pod) bool {
	return k.runtimeError(ctx) == nil && (p.Spec.HostNetwork || k.networkError(ctx) == nil)
}

// endPod stops a pod and removes the Pod when it has ended.
func (k *kubelet) endPod(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
	now := time.Now()
	run := k.Containers.change(p.UID, func(run *pod) {
		if run.stopping.IsZero() {
			run.stopping = now
		}
	})
	grace := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
	left := min(duration(p, EndsAfterAnnotation, k.Times.PodStop), grace) - now.Sub(run.stopping)
	if !run.started.IsZero() && left > 0 {
		return left, nil
	}
	if err := k.patchPod(ctx, p, k.ended(p, run)); err != nil {
		return 0, err
	}
	none := int64(0)
	err := k.core.Pods(p.Namespace).Delete(
		ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &p.UID}},
	)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, err
	}
	k.Containers.remove(p.UID)
	return 0, nil
}

func duration(p *corev1.Pod, annotation string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(p.Annotations[annotation]); err == nil {
		return d
	}
	return otherwise
}

// patchPod sends the difference between two states to the status of the Pod. A Pod that is gone is no error.
func (k *kubelet) patchPod(ctx context.Context, p *corev1.Pod, status corev1.PodStatus) error {
	if apiequality.Semantic.DeepEqual(p.Status, status) {
		return nil
	}
	before, err := json.Marshal(corev1.Pod{Status: p.Status})
	if err != nil {
		return err
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: p.UID}, Status: status})
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return err
	}
	_, err = k.core.Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
