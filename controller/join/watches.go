package join

import (
	"context"
	"math"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"wmco/applier/remote"
	"wmco/controller/base"
	"wmco/controller/record"
	"wmco/controller/windowsnode"
)

// parallelHosts is how many hosts of one kind are worked on at the same time. One without progress does not count (remote.Places).
const parallelHosts = 16

// parallelCopies is to how many hosts executables are copied at the same time: each gets up to 150 MB.
const parallelCopies = 4

// CopyPlaces are the places of hosts that get executables. None of them waits for an open one: whether there is a place is asked before.
func CopyPlaces() *remote.Places {
	limits := remote.DefaultLimits().Places(parallelCopies)
	limits.Asking, limits.Open = math.MaxInt, math.MaxInt
	return remote.NewPlaces(limits)
}

// unjoinedNodes passes Nodes that the operator has not finished with, and those that are gone: their hosts join again.
func unjoinedNodes() predicate.TypedPredicate[base.Object] {
	p := predicate.NewTypedPredicateFuncs(func(u base.Object) bool { return !windowsnode.IsJoined(u.GetAnnotations()) })
	p.DeleteFunc = func(event.TypedDeleteEvent[base.Object]) bool { return true }
	return p
}

// recordOfNode returns the record of the host that is, or was, a Node of this name; zero where there is none.
func (j *Joiner) recordOfNode(ctx context.Context, node base.Object) record.Record {
	records, _, err := j.Login.Records.Cached(ctx)
	if err != nil {
		return record.Record{}
	}
	r, _ := records.Named(node.GetName())
	return r
}
