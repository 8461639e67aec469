package rollout

import (
	"context"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/keys/signing"
	"wmco/controller/windowsnode"
)

// everything is the one request of the publisher.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}} //nolint:gochecknoglobals // a constant

// watchKind watches the kind of an object for the publisher.
func (i *debouncer) watchKind(c cache.Cache, like base.Object) source.Source {
	return source.Kind(c, like, handler.TypedFuncs[base.Object, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[base.Object], q base.Queue) { i.requestRendering(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[base.Object], q base.Queue) { i.requestRendering(q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[base.Object], q base.Queue) {
			switch before, now := e.ObjectOld, e.ObjectNew; {
			case !reflect.DeepEqual(inputRelevantFields(before), inputRelevantFields(now)):
				i.requestRendering(q)
			case !reflect.DeepEqual(turnRelevantFields(before), turnRelevantFields(now)):
				i.requestComparison(q)
			}
		},
	})
}

// watchPublished watches objects that the publisher writes.
func (i *debouncer) watchPublished(c cache.Cache, o client.Object) source.Source {
	return source.Kind(c, o, handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q base.Queue) { i.requestComparison(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q base.Queue) { i.requestComparison(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q base.Queue) { i.requestComparison(q) },
	})
}

// watchKeys watches the Secret with the keys that sign: bundles have their public halves. That a term began, which the operator itself writes,
// changes none of them.
func (i *debouncer) watchKeys(c cache.Cache) source.Source {
	return source.Kind(c, base.MetadataOf(base.SecretKind()), handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q base.Queue) {
			if e.ObjectOld.Annotations[signing.TermAnnotation] == e.ObjectNew.Annotations[signing.TermAnnotation] {
				i.requestRendering(q)
			}
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q base.Queue) {
			i.requestRendering(q)
		},
	})
}

// requestRendering has everything rendered and published.
func (i *debouncer) requestRendering(q base.Queue) {
	i.noteChange()
	i.requestComparison(q)
}

// requestComparison has what is rendered compared with what is published.
func (i *debouncer) requestComparison(q base.Queue) { q.AddAfter(everything, i.settle) }

// inputRelevantFields returns what of an object can change a bundle. Of a Node that are its labels, its addresses, the facts that its agent
// reports, the executables on its host, and the annotations that are not the operator's: its status changes all the time.
func inputRelevantFields(u base.Object) map[string]any {
	if !base.IsNode(u.GroupVersionKind().Group, u.GetKind()) {
		in := map[string]any{"labels": u.GetLabels(), "annotations": u.GetAnnotations()}
		for key, value := range u.Object {
			if key != "metadata" {
				in[key] = value
			}
		}
		return in
	}
	n := windowsnode.Node{Node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: u.GetLabels(), Annotations: u.GetAnnotations()}}}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"addresses": list}, &n.Status) // those of an API server
	n.Report, n.ReportError = windowsnode.ReadReport(n.Annotations)
	return inputOfNode(n)
}

// inputOfNode is inputRelevantFields for a Node. It reads labels, annotations, addresses and report.
func inputOfNode(n windowsnode.Node) map[string]any {
	foreign := maps.Clone(n.Annotations)
	maps.DeleteFunc(foreign, func(key, _ string) bool {
		return strings.HasPrefix(key, published.Domain) || key == windowsnode.ScaleDownAnnotation
	})
	marks := maps.Clone(n.Labels)
	delete(marks, published.UpgradingLabel) // the operator's own
	in := map[string]any{"labels": marks, "annotations": foreign, "addresses": n.Status.Addresses}
	// A report that cannot be read is an input: a finding says so.
	in["facts"], in["unreadable"] = n.Report.Facts, n.ReportError != nil
	// An older agent gets a layer without the name of its Node.
	in["features"] = n.Report.Features
	// A node whose executables are on its host gets the bundle with them.
	in["payload"] = n.Annotations[published.PayloadAnnotation]
	// What an administrator confirms.
	in["confirmed"], in["removed"] = n.Annotations[published.ConfirmAnnotation], n.Annotations[published.RemoveAnnotation]
	in["accepted"] = n.Annotations[published.ConfirmFindingAnnotation]
	return in
}

// turnRelevantFields returns what of a Node or a Machine decides whose turn it is, besides what a bundle depends on.
func turnRelevantFields(u base.Object) []any {
	all := []any{u.GetDeletionTimestamp()}
	if !base.IsNode(u.GroupVersionKind().Group, u.GetKind()) {
		return all
	}
	own := maps.Clone(u.GetAnnotations())
	maps.DeleteFunc(own, func(key, _ string) bool {
		return !strings.HasPrefix(key, published.Domain) && key != windowsnode.ScaleDownAnnotation
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
