package base

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
)

// firstKindsPause is the first pause after a definition has changed before its kinds are looked for again; pauses double up to KindsPeriod. An API
// server serves a kind some seconds after its definition is there: it waits five seconds for the other API servers
// (k8s.io/apiextensions-apiserver, pkg/controller/establish).
const firstKindsPause = time.Second

// Definitions are the CustomResourceDefinitions of a cluster. Only their metadata is read.
type Definitions struct {
	// Client reads metadata.
	Client metadata.Interface
	Log    logr.Logger
}

// definitionsResource is the resource of definitions.
func definitionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// watchGroups calls changed with the group of each definition that is there, or changes, until the context ends. Where the watch is refused or
// cut, it is begun again, with pauses up to a minute; nothing waits for it.
func (d Definitions) watchGroups(ctx context.Context, changed func(group string)) error {
	definitions := d.Client.Resource(definitionsResource())
	from := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return definitions.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return definitions.Watch(ctx, o)
		},
	}
	informer := (*RefusedWatches)(nil).newInformer(from, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	if err := informer.SetTransform(keepNameOnly); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) {
		d.Log.V(1).Info("definitions cannot be watched; kinds are looked for without it", "every", KindsPeriod, "error", err)
	}); err != nil {
		return err
	}
	note := func(o any) {
		if definition, ok := o.(*metav1.PartialObjectMetadata); ok {
			changed(groupOfDefinition(definition.Name))
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, o any) { note(o) }}); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

// groupOfDefinition returns the group that a definition is about: its name is the plural name of the kind and the group.
func groupOfDefinition(name string) string {
	_, group, _ := strings.Cut(name, ".")
	return group
}

// keepNameOnly keeps of an object that is watched as metadata what tells it from others, and its informer its versions.
func keepNameOnly(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		return nameOf(m), nil
	}
	return o, nil
}

func nameOf(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}}
}

// namesAtATime is how many objects are in memory whole while their names are listed: each may be as large as an object may be.
const namesAtATime = 20

// namesInParts lists objects in parts, and keeps their names. An API server that streams no lists would send all of them at once, whole, from its cache, which
// knows no limit (kubernetes.io/docs/reference/using-api/api-concepts, "Streaming lists" and "Retrieving large results sets in chunks").
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
