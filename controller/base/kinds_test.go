package base

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather/objects"
)

// sickServer counts lists, and answers them with an error once it is sick.
type sickServer struct {
	client.Reader
	sick  atomic.Bool
	lists atomic.Int32
}

func (s *sickServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	s.lists.Add(1)
	if s.sick.Load() {
		return errors.New("no answer")
	}
	return nil
}

// TestARefusedKindIsLookedForWithPausesWhileTheAPIServerIsSick: its informer was refused, and then the API server gives no answer.
func TestARefusedKindIsLookedForWithPausesWhileTheAPIServerIsSick(t *testing.T) {
	synctest.Test(t, checkPausesWhileTheAPIServerIsSick)
}

func checkPausesWhileTheAPIServerIsSick(t *testing.T) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}, meta.RESTScopeNamespace)
	server, refused := &sickServer{}, NewRefusedWatches()
	k := NewKinds(mapper, server, refused, noDefinitions())
	machines := []objects.Want{{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}}
	if err := k.WatchWhenServed(t.Context(), machines, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	server.sick.Store(true)
	server.lists.Store(0)
	refused.noteRefusedKind(KindOf(machines[0]))
	ctx, stop := context.WithTimeout(t.Context(), KindsPeriod-time.Second)
	defer stop()
	if err := k.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := server.lists.Load(); n != 1 {
		t.Errorf("%d requests, want 1 and a pause", n)
	}
	if kinds := refused.takeRefusedKinds(); len(kinds) != 1 {
		t.Errorf("%d kinds are looked at after the pause, want 1", len(kinds))
	}
}
