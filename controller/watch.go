package controller

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/gather/objects"
)

// settle is how long the publisher waits after the first change: what is applied together is rendered once.
const settle = time.Second

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

// cacheOptions keep in memory what is read and no more: no Secret and no ConfigMap but those that are named.
func cacheOptions(wants []objects.Want) cache.Options {
	byKind := map[schema.GroupVersionKind]cache.ByObject{}
	for _, w := range wants {
		of := byKind[kindOf(w)]
		switch {
		case w.Namespace != "":
			if of.Namespaces == nil {
				of.Namespaces = map[string]cache.Config{}
			}
			of.Namespaces[w.Namespace] = cache.Config{FieldSelector: named(w), LabelSelector: labeled(w)}
		default:
			of.Field, of.Label = named(w), labeled(w)
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

func named(w objects.Want) fields.Selector {
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

// watchOf watches one kind for the publisher.
func watchOf(c cache.Cache, w objects.Want) source.Source {
	type object = *unstructured.Unstructured
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) { q.AddAfter(everything, settle) }
	return source.Kind(c, objectOf(w), handler.TypedFuncs[object, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
	}, predicate.TypedFuncs[object]{
		UpdateFunc: func(e event.TypedUpdateEvent[object]) bool {
			return !reflect.DeepEqual(relevant(e.ObjectOld), relevant(e.ObjectNew))
		},
	})
}

// relevant returns what of an object can change a bundle. A Node's kubelet writes its status all the time: of that only the
// addresses count.
func relevant(u *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"labels": u.GetLabels(), "annotations": u.GetAnnotations()}
	if u.GetKind() == "Node" && u.GroupVersionKind().Group == corev1.GroupName {
		addresses, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
		return map[string]any{"metadata": metadata, "addresses": addresses}
	}
	rest := map[string]any{"metadata": metadata}
	for key, value := range u.Object {
		if key != "metadata" {
			rest[key] = value
		}
	}
	return rest
}
