package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// TestANodeThatCannotBeWrittenKeepsNoOtherOneWaiting: of ten Nodes some cannot be written, for different reasons. The others are told in the same call,
// and the next calls ask for what failed only when its own pause has passed.
func TestANodeThatCannotBeWrittenKeepsNoOtherOneWaiting(t *testing.T) {
	e, has, _ := executorOf(t)
	next := rendered(t, "next", bundle.ImpactNone)
	resource := corev1.Resource("nodes")
	failing := map[string]error{
		"win-1": apierrors.NewForbidden(resource, "win-1", errors.New("a webhook refuses it")),
		"win-4": apierrors.NewTooManyRequests("busy", 30),
		"win-7": errors.New("no answer"),
		"win-9": apierrors.NewConflict(resource, "win-9", errors.New("changed")),
	}
	var list []nodeStep
	for i := range 10 {
		node := signedNode(t, e, has, reportOf(has))
		node.Name, node.ResourceVersion = fmt.Sprintf("win-%d", i), "1"
		s := plan.Step{Node: node.Name, Action: plan.ActionPublish, Bundle: next.Bundle, Permit: bundle.ImpactNone}
		list = append(list, nodeStep{Step: s, node: windowsnode.Decode(node), wanted: &next})
	}
	var mu sync.Mutex
	asked := map[string]int{}
	e.Events, e.Log, e.Try = events.NewFakeRecorder(10), logr.Discard(), base.NewPauses(logr.Discard()).Try
	e.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			mu.Lock()
			defer mu.Unlock()
			asked[o.GetName()]++
			return failing[o.GetName()]
		},
	})
	makeAll := func() (written, failed []string) {
		for i, did := range e.makeSteps(t.Context(), list) {
			if did.written {
				written = append(written, list[i].Node)
			}
			if did.err != nil {
				failed = append(failed, list[i].Node)
			}
		}
		return written, failed
	}
	for range 3 {
		written, failed := makeAll()
		if diff := cmp.Diff(slices.Sorted(maps.Keys(failing)), failed); diff != "" || len(written) != len(list)-len(failing) {
			t.Errorf("written: %s; failed (-want +got):\n%s", strings.Join(written, ", "), diff)
		}
	}
	// A pause that is asked for is kept, and what has changed is decided again at once.
	if asked["win-4"] != 1 || asked["win-9"] != 3 || asked["win-0"] != 3 {
		t.Errorf("requests: %v", asked)
	}
}
