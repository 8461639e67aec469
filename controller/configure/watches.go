package configure

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// UnjoinedNodes passes Nodes that the operator has not finished with, those whose adoption is asked for, and those that are gone: their hosts join
// again.
func UnjoinedNodes() predicate.TypedPredicate[base.Object] {
	isUnjoined := func(u base.Object) bool { return !windowsnode.IsJoined(u.GetAnnotations()) }
	isAsked := func(u base.Object) bool {
		return u.GetAnnotations()[published.AdoptAnnotation] != "" && published.WaitsForAdoption(u.GetAnnotations())
	}
	p := predicate.NewTypedPredicateFuncs(func(u base.Object) bool { return isUnjoined(u) || isAsked(u) })
	p.UpdateFunc = func(e event.TypedUpdateEvent[base.Object]) bool {
		return isUnjoined(e.ObjectNew) || isAsked(e.ObjectNew) && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}
	p.DeleteFunc = func(event.TypedDeleteEvent[base.Object]) bool { return true }
	return p
}

// RecordOfNode returns the record of the host that is, or was, a Node of this name; zero where there is none.
func (j *Joiner) RecordOfNode(ctx context.Context, node base.Object) record.Record {
	records, _, err := j.Login.Records.CachedRecords(ctx)
	if err != nil {
		return record.Record{}
	}
	r, _ := records.RecordOfNode(node.GetName())
	return r
}
