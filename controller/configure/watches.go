package configure

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"wmco/controller/base"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// UnjoinedNodes passes Nodes that the operator has not finished with, and those that are gone: their hosts join again.
func UnjoinedNodes() predicate.TypedPredicate[base.Object] {
	p := predicate.NewTypedPredicateFuncs(func(u base.Object) bool { return !windowsnode.IsJoined(u.GetAnnotations()) })
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
