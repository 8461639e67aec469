package configure

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// UnjoinedNodes passes Nodes that have not joined, Nodes whose adoption is requested, and deleted Nodes, whose hosts join
// again.
func UnjoinedNodes() predicate.TypedPredicate[*corev1.Node] {
	isUnjoined := func(u *corev1.Node) bool { return !windowsnode.IsJoined(u.Annotations) }
	isAsked := func(u *corev1.Node) bool {
		return u.Annotations[published.AdoptAnnotation] != "" && published.WaitsForAdoption(u.Annotations)
	}
	p := predicate.NewTypedPredicateFuncs(func(u *corev1.Node) bool { return isUnjoined(u) || isAsked(u) })
	p.UpdateFunc = func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		return isUnjoined(e.ObjectNew) || isAsked(e.ObjectNew) &&
			!maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations)
	}
	p.DeleteFunc = func(event.TypedDeleteEvent[*corev1.Node]) bool { return true }
	return p
}

// RecordOfNode returns the record of the host that is, or was, a Node of this name; zero if there is none.
func (j *Joiner) RecordOfNode(ctx context.Context, node *corev1.Node) record.Record {
	records, _, err := j.Login.Records.CachedRecords(ctx)
	if err != nil {
		return record.Record{}
	}
	r, _ := records.RecordOfNode(node.Name)
	return r
}
