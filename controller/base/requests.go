package base

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle/published"
	"wmco/controller/gather/objects"
)

type (
	// Object is one of a kind without a Go type in the cache of the operator.
	Object = *unstructured.Unstructured
	// Queue is that of a controller.
	Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// MachinesNamespace is that of all Machines.
const MachinesNamespace = "openshift-machine-api"

// ParallelHosts is how many hosts of one kind are worked on at the same time. One without progress does not count
// (remote.Places).
const ParallelHosts = 16

// NodeKind is the kind Node.
func NodeKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Node") }

// MachineKind is the kind Machine of OpenShift's Machine API.
func MachineKind() schema.GroupVersionKind { return machinev1beta1.GroupVersion.WithKind("Machine") }

// ConfigMapKind is the kind ConfigMap.
func ConfigMapKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("ConfigMap") }

// SecretKind is the kind Secret.
func SecretKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Secret") }

// CertificateRequestKind is the kind CertificateSigningRequest.
func CertificateRequestKind() schema.GroupVersionKind {
	return certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
}

// NewObject returns an empty object of a kind.
func NewObject(kind schema.GroupVersionKind) Object { return objects.NewObject(kind) }

// RequestsFor requests what has these names.
func RequestsFor(names []string) []reconcile.Request {
	var list []reconcile.Request
	for _, n := range names {
		list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Name: n}})
	}
	return list
}

// EnqueueAll requests everything.
func EnqueueAll[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return RequestsFor([]string{"all"})
	})
}

// EnqueueAllAfter requests everything once for all changes within a pause.
func EnqueueAllAfter[T client.Object](pause time.Duration) handler.TypedEventHandler[T, reconcile.Request] {
	enqueue := func(q Queue) { q.AddAfter(RequestsFor([]string{"all"})[0], pause) }
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q Queue) { enqueue(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q Queue) { enqueue(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q Queue) { enqueue(q) },
	}
}

// OnlyDeletions passes deletions.
func OnlyDeletions[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc:  func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc:  func(event.TypedUpdateEvent[T]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[T]) bool { return false },
	}
}

// AtStart requests once, when the operator starts.
func AtStart() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.Add(RequestsFor([]string{"all"})[0])
		return nil
	})
}

// Signal wakes a controller. Signals that were not received yet are one.
type Signal chan event.TypedGenericEvent[struct{}]

// NewSignal returns a signal that was not sent.
func NewSignal() Signal { return make(Signal, 1) }

// WakeController wakes the controller.
func (s Signal) WakeController() {
	select {
	case s <- event.TypedGenericEvent[struct{}]{}:
	default: // one is waiting already
	}
}

// QueueSource calls do with the queue of the controller that watches it.
func (s Signal) QueueSource(do func(Queue)) source.Source {
	return source.TypedChannel(s, handler.TypedFuncs[struct{}, reconcile.Request]{
		GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[struct{}],
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			do(q)
		},
	})
}

// NodeChanges passes changes of a Node besides the kubelet's own signs of life: with each of those, a host that cannot
// be reached would be retried.
func NodeChanges() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		return changesNode(e.ObjectOld, e.ObjectNew)
	}}
}

// changesNode compares the labels, annotations and addresses of a Node, whether its kubelet is Ready, and the last sign
// of life of its node agent.
func changesNode(before, now *corev1.Node) bool {
	return !maps.Equal(before.Labels, now.Labels) || !maps.Equal(before.Annotations, now.Annotations) ||
		!slices.Equal(before.Status.Addresses, now.Status.Addresses) || signsOfLife(before) != signsOfLife(now)
}

// signs are the signs of life of a Node: whether its kubelet is Ready, and when its node agent has reported last.
type signs struct {
	ready    corev1.ConditionStatus
	reported time.Time
}

func signsOfLife(node *corev1.Node) (s signs) {
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			s.ready = c.Status
		case published.Condition:
			s.reported = c.LastHeartbeatTime.UTC()
		}
	}
	return s
}

// EqualNodeBesides reports whether two maps of a Node, its labels or annotations, are equal but for the keys that are
// left out.
func EqualNodeBesides(a, b map[string]string, leftOut func(key string) bool) bool {
	return equalBesides(a, b, leftOut, func(x, y string) bool { return x == y })
}

func equalBesides[V any](a, b map[string]V, leftOut func(key string) bool, equal func(V, V) bool) bool {
	for key, value := range a {
		if other, ok := b[key]; !leftOut(key) && (!ok || !equal(value, other)) {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && !leftOut(key) {
			return false
		}
	}
	return true
}

// NodeAddresses returns the addresses and names that a Node reports.
func NodeAddresses(node *corev1.Node) []string {
	var all []string
	for _, a := range node.Status.Addresses {
		all = append(all, strings.ToLower(a.Address))
	}
	return all
}

// MetadataValues returns the labels or the annotations of an object of a cache, as they are there.
func MetadataValues(u Object, field string) map[string]any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	values, _ := metadata[field].(map[string]any)
	return values
}

// StatusField returns a field of the status, as it is there.
func StatusField(u Object, field string) any {
	values, _ := u.Object["status"].(map[string]any)
	return values[field]
}

// EqualBesides reports whether two maps are equal but for the keys that are left out.
func EqualBesides(a, b map[string]any, leftOut func(key string) bool) bool {
	return equalBesides(a, b, leftOut, EqualValues)
}

// EqualValues reports whether two values of an object of a cache are equal.
func EqualValues(a, b any) bool {
	if text, ok := a.(string); ok {
		other, ok := b.(string)
		return ok && text == other
	}
	return reflect.DeepEqual(a, b)
}

// StatusAddresses returns the addresses and names in a status.
func StatusAddresses(u Object) []string {
	list, _ := StatusField(u, "addresses").([]any)
	var all []string
	for _, a := range list {
		if m, ok := a.(map[string]any); ok {
			text, _ := m["address"].(string)
			all = append(all, strings.ToLower(text))
		}
	}
	return all
}
