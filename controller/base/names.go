package base

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// keepNameOnly keeps of an object that is watched as metadata what tells it from others, and its informer its versions.
func keepNameOnly(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		return nameOf(m), nil
	}
	return o, nil
}

func nameOf(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: m.UID,
		ResourceVersion: m.ResourceVersion}}
}

// namesAtATime is how many objects are in memory whole while their names are listed: each may be as large as an object
// may be.
const namesAtATime = 20

// namesInParts lists objects in parts, and keeps their names. An API server that streams no lists would send all of
// them at once, whole, from its cache, which knows no limit (kubernetes.io/docs/reference/using-api/api-concepts,
// "Streaming lists" and "Retrieving large results sets in chunks").
type namesInParts struct {
	toolscache.ListerWatcherWithContext
}

// ListWithContext implements cache.ListerWithContext.
func (n namesInParts) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch, o.Limit = "", "", namesAtATime
	var names metav1.PartialObjectMetadataList
	for more := true; more; more = o.Continue != "" {
		answer, err := n.ListerWatcherWithContext.ListWithContext(ctx, o)
		if err != nil {
			return nil, err
		}
		part, ok := answer.(*metav1.PartialObjectMetadataList)
		if !ok {
			return nil, fmt.Errorf("listing names: the answer is %T", answer)
		}
		for i := range part.Items {
			names.Items = append(names.Items, *nameOf(&part.Items[i]))
		}
		names.ResourceVersion, o.Continue = part.ResourceVersion, part.Continue
	}
	return &names, nil
}
