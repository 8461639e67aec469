package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkLastOfFour: the cluster is updated to 4.23, which has the Kubernetes of 5.0, and mirrors still reach its nodes.
func checkLastOfFour(t *testing.T, r *running) {
	first := r.desired("")
	version := &unstructured.Unstructured{}
	version.SetAPIVersion("config.openshift.io/v1")
	version.SetKind("ClusterVersion")
	if err := r.Get(t.Context(), client.ObjectKey{Name: "version"}, version); err != nil {
		t.Fatal(err)
	}
	next := version.DeepCopy()
	history, _, _ := unstructured.NestedSlice(next.Object, "status", "history")
	newest := map[string]any{"state": "Completed", "startedTime": "2026-11-20T08:00:00Z", "completionTime": "2026-11-20T09:00:00Z", "version": "4.23.2", "image": "quay.io/example/release", "verified": true}
	if err := unstructured.SetNestedSlice(next.Object, append([]any{newest}, history...), "status", "history"); err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(r.Client.Status().Patch(t.Context(), next, client.MergeFrom(version)), r.seen(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedSlice(next.Object, "status", "history"); len(got) != len(history)+1 {
		t.Fatalf("the API server has the history %v", got)
	}
	set := mirrorSet("late", "late.example.com")
	if err := r.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	undo := sync.OnceFunc(func() {
		_ = r.Client.Delete(context.Background(), set)
		_ = r.Client.Status().Patch(context.Background(), version, client.MergeFrom(next))
	})
	t.Cleanup(undo)
	if second := r.desired(first.Bundle); !slices.Contains(r.registries(second), "late.example.com") {
		t.Errorf("registries %q", r.registries(second))
	}
	undo()
	if err := r.eventually("the bundle of before", func() bool { return r.desired("").Bundle == first.Bundle }); err != nil {
		t.Error(err)
	}
}
