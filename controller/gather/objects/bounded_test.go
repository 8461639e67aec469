package objects_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
)

// endless is a cluster with as many Events as are asked for, each of one MiB.
type endless struct {
	client.Reader
	asked int
	limit int64
}

func (e *endless) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if e.asked++; e.asked > 100 {
		return fmt.Errorf("asked %d times", e.asked)
	}
	e.limit = o.Limit
	for i := range o.Limit {
		item := objects.NewObject(list.GetObjectKind().GroupVersionKind())
		item.SetKind("Event")
		item.SetNamespace("default")
		item.SetName(fmt.Sprintf("%d-%d", e.asked, i))
		item.SetAnnotations(map[string]string{"a": strings.Repeat("x", 1<<20)})
		items := list.(*unstructured.UnstructuredList) //nolint:forcetypeassert // what a clusterReader asks for
		items.Items = append(items.Items, *item)
	}
	list.SetContinue("more")
	return nil
}

// TestABoundedKindHasAnEnd: whoever gathers reads some of the Events of a kubelet that makes them all the time, and is told that there are more.
func TestABoundedKindHasAnEnd(t *testing.T) {
	cluster := &endless{}
	set, err := objects.NewClusterReader(cluster).Read(t.Context(), []objects.Want{{Version: "v1", Kind: "Event", Namespace: "default", Bounded: true}})
	if err != nil || cluster.limit == 0 || cluster.limit > 100 {
		t.Fatalf("%v, %d at a time", err, cluster.limit)
	}
	if n := len(set.Objects); n < 64 || n > 64+int(cluster.limit) {
		t.Errorf("%d objects of one MiB", n)
	}
	if len(set.Findings) != 1 || set.Findings[0].Reason != reason.InputTooLarge || !strings.Contains(set.Findings[0].Message, "more than 64 MiB of Event") {
		t.Errorf("%+v", set.Findings)
	}
}

// cached gives all at once, and a token that it does not take, as the cache of controller-runtime does.
type cached struct{ client.Reader }

func (cached) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if (&client.ListOptions{}).ApplyOptions(options).Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	list.SetContinue("continue-not-supported")
	return nil
}

// TestACacheIsReadOnce: the operator reads its inputs from one.
func TestACacheIsReadOnce(t *testing.T) {
	set, err := objects.NewClusterReader(cached{}).Read(t.Context(), []objects.Want{{Group: "config.openshift.io", Version: "v1", Kind: "ImageDigestMirrorSet"}})
	if err != nil || len(set.Objects) > 0 {
		t.Errorf("%+v, %v", set, err)
	}
}
