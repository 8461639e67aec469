package controller

import (
	"context"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/rollout"
	"wmco/controller/signing"
)

// everything is the one request of the publisher.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}} //nolint:gochecknoglobals // a constant

func kindOf(w objects.Want) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

func objectOf(w objects.Want) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kindOf(w))
	return u
}

// cacheOptions keep in memory what is read and no more: no Secret and no ConfigMap but those that are named, and of Nodes not what
// only a scheduler needs.
func cacheOptions(wants []objects.Want) cache.Options {
	byKind := map[schema.GroupVersionKind]cache.ByObject{}
	for _, w := range wants {
		of := byKind[kindOf(w)]
		switch {
		case w.Namespace != "":
			if of.Namespaces == nil {
				of.Namespaces = map[string]cache.Config{}
			}
			of.Namespaces[w.Namespace] = cache.Config{FieldSelector: byName(w), LabelSelector: labeled(w)}
		default:
			of.Field, of.Label = byName(w), labeled(w)
			if isNode(w.Group, w.Kind) {
				of.Transform = stripNode
			}
		}
		byKind[kindOf(w)] = of
	}
	all := map[client.Object]cache.ByObject{}
	for kind, of := range byKind {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		all[u] = of
	}
	return cache.Options{ByObject: all, DefaultTransform: cache.TransformStripManagedFields()}
}

func byName(w objects.Want) fields.Selector {
	if len(w.Names) != 1 {
		return nil
	}
	return fields.OneTermEqualSelector("metadata.name", w.Names[0])
}

func labeled(w objects.Want) labels.Selector {
	if len(w.Labels) == 0 {
		return nil
	}
	return labels.SelectorFromSet(w.Labels)
}

func isNode(group, kind string) bool { return group == corev1.GroupName && kind == "Node" }

// stripNode drops what grows with the images and volumes of a node.
func stripNode(o any) (any, error) {
	o, err := cache.TransformStripManagedFields()(o)
	if u, ok := o.(*unstructured.Unstructured); ok {
		for _, field := range []string{"images", "volumesAttached", "volumesInUse"} {
			unstructured.RemoveNestedField(u.Object, "status", field)
		}
	}
	return o, err
}

type (
	object = *unstructured.Unstructured
	queue  = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// watch watches one kind for the publisher.
func (i *inputs) watch(c cache.Cache, w objects.Want) source.Source {
	return source.Kind(c, objectOf(w), handler.TypedFuncs[object, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[object], q queue) { i.input(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[object], q queue) { i.input(q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[object], q queue) {
			switch before, now := e.ObjectOld, e.ObjectNew; {
			case !reflect.DeepEqual(inputOf(before), inputOf(now)):
				i.input(q)
			case !reflect.DeepEqual(turnOf(before), turnOf(now)):
				i.again(q)
			}
		},
	})
}

// watchPublished watches objects that the publisher writes.
func (i *inputs) watchPublished(c cache.Cache, o client.Object) source.Source {
	return source.Kind(c, o, handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { i.again(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { i.again(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { i.again(q) },
	})
}

// watchKeys watches the Secret with the keys that sign: bundles have their public halves. That a term began, which the operator itself writes,
// changes none of them.
func (i *inputs) watchKeys(c cache.Cache) source.Source {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(c, secret, handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			if e.ObjectOld.Annotations[signing.TermAnnotation] == e.ObjectNew.Annotations[signing.TermAnnotation] {
				i.input(q)
			}
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q queue) { i.input(q) },
	})
}

// input has everything rendered and published.
func (i *inputs) input(q queue) {
	i.changed()
	i.again(q)
}

// again has what is rendered compared with what is published.
func (i *inputs) again(q queue) { q.AddAfter(everything, i.settle) }

// inputOf returns what of an object can change a bundle. Of a Node that are its labels, its addresses, the facts that its agent
// reports, the executables on its host, and the annotations that are not the operator's: its status changes all the time.
func inputOf(u object) map[string]any {
	if !isNode(u.GroupVersionKind().Group, u.GetKind()) {
		in := map[string]any{"labels": u.GetLabels(), "annotations": u.GetAnnotations()}
		for key, value := range u.Object {
			if key != "metadata" {
				in[key] = value
			}
		}
		return in
	}
	var status corev1.NodeStatus
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"addresses": list}, &status) // those of an API server
	return inputOfNode(u, status.Addresses)
}

// inputOfNode is inputOf for a Node of any form.
func inputOfNode(u metav1.Object, addresses []corev1.NodeAddress) map[string]any {
	foreign := maps.Clone(u.GetAnnotations())
	maps.DeleteFunc(foreign, func(key, _ string) bool {
		return strings.HasPrefix(key, published.Domain) || key == rollout.ScaleDownAnnotation
	})
	marks := maps.Clone(u.GetLabels())
	delete(marks, published.UpgradingLabel) // the operator's own
	in := map[string]any{"labels": marks, "annotations": foreign, "addresses": addresses}
	// A report that cannot be read is an input: a finding says so.
	report, err := published.DecodeReport(u.GetAnnotations()[published.ReportAnnotation])
	in["facts"], in["unreadable"] = report.Facts, err != nil
	// An older agent gets a layer without the name of its Node.
	in["features"] = report.Features
	// A node whose executables are on its host gets the bundle with them.
	in["payload"] = u.GetAnnotations()[published.PayloadAnnotation]
	// What an administrator confirms.
	in["confirmed"], in["removed"] = u.GetAnnotations()[published.ConfirmAnnotation], u.GetAnnotations()[published.RemoveAnnotation]
	return in
}

// turnOf returns what of a Node or a Machine decides whose turn it is, besides what a bundle depends on.
func turnOf(u object) []any {
	all := []any{u.GetDeletionTimestamp()}
	if !isNode(u.GroupVersionKind().Group, u.GetKind()) {
		return all
	}
	own := maps.Clone(u.GetAnnotations())
	maps.DeleteFunc(own, func(key, _ string) bool {
		return !strings.HasPrefix(key, published.Domain) && key != rollout.ScaleDownAnnotation
	})
	unschedulable, _, _ := unstructured.NestedBool(u.Object, "spec", "unschedulable")
	taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
	all = append(all, own, unschedulable, taints)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		switch m, _ := c.(map[string]any); m["type"] {
		case string(corev1.NodeReady), published.Condition:
			all = append(all, m["status"], m["lastTransitionTime"])
		}
	}
	return all
}
