package rollout

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// everything is the request of the publisher for all that it does.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}} //nolint:gochecknoglobals // a constant

// stepsOfHosts is the other one: hosts that join have got further.
var stepsOfHosts = reconcile.Request{NamespacedName: types.NamespacedName{Name: "steps"}} //nolint:gochecknoglobals // a constant

// watchKind watches a kind for the publisher.
func (i *debouncer) watchKind(c cache.Cache, kind schema.GroupVersionKind) source.Source {
	if kind == base.NodeKind() {
		return watchObjects(i, c, &corev1.Node{}, changesNodeInput, changesNodeTurn)
	}
	return watchObjects(i, c, base.NewObject(kind), changesInput, changesDeletion)
}

// watchObjects watches objects of which an update can change bundles, or which node is next.
func watchObjects[T client.Object](i *debouncer, c cache.Cache, like T, changesInput,
	changesTurn func(before, now T) bool) source.Source {
	return source.Kind(c, like, handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q base.Queue) { i.requestRendering(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q base.Queue) { i.requestRendering(q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q base.Queue) {
			switch before, now := e.ObjectOld, e.ObjectNew; {
			case changesInput(before, now):
				i.requestRendering(q)
			case changesTurn(before, now):
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

// watchKeys watches the Secret with the keys that sign: bundles have their public halves. That a term began, which the
// operator itself writes, changes none of them.
func (i *debouncer) watchKeys(c cache.Cache) source.Source {
	return source.Kind(c, base.MetadataOf(base.SecretKind()),
		handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
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

// requestComparison has rendered bundles compared with published ones.
func (i *debouncer) requestComparison(q base.Queue) { q.AddAfter(everything, i.settle) }

// requestSteps has the steps of joining hosts reported.
func (i *debouncer) requestSteps(q base.Queue) { q.AddAfter(stepsOfHosts, i.settle) }

// changesInput reports whether an update of an object that is no Node can change a bundle.
func changesInput(before, now base.Object) bool {
	return !reflect.DeepEqual(base.MetadataValues(before, "labels"), base.MetadataValues(now, "labels")) ||
		!reflect.DeepEqual(base.MetadataValues(before, "annotations"), base.MetadataValues(now, "annotations")) ||
		!base.EqualBesides(before.Object, now.Object, func(key string) bool { return key == "metadata" })
}

// changesNodeInput reports whether an update of a Node can change a bundle: its labels, its addresses, the facts that
// its agent reports, the executables on its host, and the annotations that are not the operator's (inputOfNode). Its
// status changes all the time. Each event of a thousand Nodes comes here, so nothing is copied or decoded that is the
// same.
func changesNodeInput(before, now *corev1.Node) bool {
	isOwn := func(key string) bool { return isOperatorKey(key) && !isInputKey(key) }
	switch {
	case !base.EqualNodeBesides(before.Labels, now.Labels, func(key string) bool { return key == published.UpgradingLabel }), // the operator's own
		!base.EqualNodeBesides(before.Annotations, now.Annotations, isOwn),
		!slices.Equal(before.Status.Addresses, now.Status.Addresses):
		return true
	}
	return changesReportedInput(before.Annotations[published.ReportAnnotation],
		now.Annotations[published.ReportAnnotation])
}

// changesReportedInput compares two reports of a node agent.
func changesReportedInput(before, now string) bool {
	if before == now {
		return false
	}
	var reports [2]windowsnode.Decoded
	for i, text := range []string{before, now} {
		reports[i].Report, reports[i].ReportError = windowsnode.ReadReport(map[string]string{published.ReportAnnotation: text})
	}
	return !reflect.DeepEqual(inputOfReport(reports[0]), inputOfReport(reports[1]))
}

// isOperatorKey reports whether an annotation of a Node is one of this operator's domain, or one that only it writes.
func isOperatorKey(key string) bool {
	return strings.HasPrefix(key, published.Domain) || key == windowsnode.ScaleDownAnnotation
}

// isInputKey reports whether an annotation of this operator's domain is an input as it stands there.
func isInputKey(key string) bool {
	switch key {
	case published.PayloadAnnotation, published.ConfirmAnnotation, published.RemoveAnnotation,
		published.ConfirmFindingAnnotation:
		return true
	}
	return false
}

// inputOfNode returns what of a Node can change a bundle. It reads labels, annotations, addresses and report.
func inputOfNode(n windowsnode.Node) map[string]any {
	foreign := maps.Clone(n.Annotations)
	maps.DeleteFunc(foreign, func(key, _ string) bool { return isOperatorKey(key) })
	marks := maps.Clone(n.Labels)
	delete(marks, published.UpgradingLabel) // the operator's own
	in := inputOfReport(*n.Decoded)
	in["labels"], in["annotations"], in["addresses"] = marks, foreign, n.Status.Addresses
	// A node whose executables are on its host gets the bundle with them.
	in["payload"] = n.Annotations[published.PayloadAnnotation]
	// What an administrator confirms.
	in["confirmed"], in["removed"] = n.Annotations[published.ConfirmAnnotation],
		n.Annotations[published.RemoveAnnotation]
	in["accepted"] = n.Annotations[published.ConfirmFindingAnnotation]
	return in
}

// inputOfReport is inputOfNode for the report alone.
func inputOfReport(n windowsnode.Decoded) map[string]any {
	return map[string]any{
		// A report that cannot be read is an input, with a finding.
		"facts": n.Report.Facts, "unreadable": n.ReportError != nil,
		// An older agent gets a layer without the name of its Node.
		"features": n.Report.Features,
	}
}

// changesDeletion reports whether an object begins to be deleted: a Machine that is takes its node out of its turn.
func changesDeletion(before, now base.Object) bool {
	return !before.GetDeletionTimestamp().Equal(now.GetDeletionTimestamp())
}

// changesNodeTurn reports whether an update of a Node changes which node is next, besides what a bundle depends on.
func changesNodeTurn(before, now *corev1.Node) bool {
	isForeign := func(key string) bool { return !isOperatorKey(key) }
	return !before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!base.EqualNodeBesides(before.Annotations, now.Annotations, isForeign) ||
		before.Spec.Unschedulable != now.Spec.Unschedulable ||
		!reflect.DeepEqual(before.Spec.Taints, now.Spec.Taints) ||
		turnConditions(before) != turnConditions(now)
}

// conditionState is the part of a condition that decides which node is next.
type conditionState struct {
	status corev1.ConditionStatus
	since  time.Time
}

// turnConditions returns those of the kubelet and of the node agent.
func turnConditions(node *corev1.Node) (states [2]conditionState) {
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			states[0] = conditionState{c.Status, c.LastTransitionTime.UTC()}
		case published.Condition:
			states[1] = conditionState{c.Status, c.LastTransitionTime.UTC()}
		}
	}
	return states
}
