package base

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
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
	k := NewKinds(mapper, server, refused, logr.Discard())
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

// machineServer serves Machines from some time on, as a mapper and as a reader.
type machineServer struct {
	meta.RESTMapper
	client.Reader
	from atomic.Pointer[time.Time]
}

func newMachineServer() *machineServer {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(MachineKind(), meta.RESTScopeNamespace)
	return &machineServer{RESTMapper: mapper}
}

// RESTMapping implements meta.RESTMapper.
func (s *machineServer) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if from := s.from.Load(); from == nil || time.Now().Before(*from) {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return s.RESTMapper.RESTMapping(kind, versions...)
}

// List implements client.Reader.
func (s *machineServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

// TestAKindIsUsedWhenItIsServed: it is looked for at most KindsPeriod after that.
func TestAKindIsUsedWhenItIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMachineServer()
		k := NewKinds(server, server, NewRefusedWatches(), logr.Discard())
		used := make(chan time.Time, 1)
		machines := []objects.Want{{Group: MachineKind().Group, Version: MachineKind().Version, Kind: MachineKind().Kind}}
		if err := k.WatchWhenServed(t.Context(), machines, func() error {
			used <- time.Now()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- k.Start(ctx) }()
		from := time.Now().Add(40 * time.Second)
		server.from.Store(&from)
		if late := (<-used).Sub(from); late < 0 || late > KindsPeriod {
			t.Errorf("used %v after it was served", late)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
