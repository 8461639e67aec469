package base

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather/objects"
)

// noDefinitions are those of a cluster without any.
func noDefinitions() Definitions {
	return Definitions{Client: definitionsClient(), Log: logr.Discard()}
}

// definitionsClient is an API server that has these definitions.
func definitionsClient(names ...string) *fake.FakeMetadataClient {
	known := fake.NewTestScheme()
	utilruntime.Must(metav1.AddMetaToScheme(known))
	var all []runtime.Object
	for _, name := range names {
		all = append(all, definition(name))
	}
	c := fake.NewSimpleMetadataClient(known, all...)
	// It sends no initial events: reflectors list then.
	c.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		asked, ok := action.(clienttesting.WatchActionImpl)
		return ok && asked.ListOptions.SendInitialEvents != nil, nil, apierrors.NewBadRequest("no initial events")
	})
	return c
}

func definition(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: definitionsResource().GroupVersion().String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// machineServer serves Machines from some time on, as a mapper and as a reader.
type machineServer struct {
	meta.RESTMapper
	client.Reader
	from  atomic.Pointer[time.Time]
	lists atomic.Int32
}

func newMachineServer() *machineServer {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(MachineKind(), meta.RESTScopeNamespace)
	return &machineServer{RESTMapper: mapper}
}

// RESTMapping implements meta.RESTMapper.
func (s *machineServer) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	s.lists.Add(1)
	if from := s.from.Load(); from == nil || time.Now().Before(*from) {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return s.RESTMapper.RESTMapping(kind, versions...)
}

// List implements client.Reader.
func (s *machineServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

const machineDefinition = "machines.machine.openshift.io"

// timeUntilUsed returns how long Machines, which are served from a time after the start of the operator, are not used, and how often they were
// looked for. Define is called then.
func timeUntilUsed(t *testing.T, definitions *fake.FakeMetadataClient, served time.Duration, define func()) (late time.Duration, lists int32) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := newMachineServer()
		k := NewKinds(server, server, NewRefusedWatches(), Definitions{Client: definitions, Log: logr.Discard()})
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
		time.Sleep(40 * time.Second) // it was looked for once, and is in ten seconds when definitions help not
		synctest.Wait()
		server.lists.Store(0)
		from := time.Now().Add(served)
		server.from.Store(&from)
		define()
		late = (<-used).Sub(from)
		lists = server.lists.Load()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return late, lists
}

// TestAKindIsUsedSecondsAfterItsDefinition: it is served five seconds after its definition appears.
func TestAKindIsUsedSecondsAfterItsDefinition(t *testing.T) {
	definitions := definitionsClient("others.example.com")
	late, lists := timeUntilUsed(t, definitions, 5*time.Second, func() {
		if err := definitions.Tracker().Create(definitionsResource(), definition(machineDefinition), ""); err != nil {
			t.Error(err)
		}
	})
	if late > 3*time.Second || lists > 6 {
		t.Errorf("used %v after it was served, looked for %d times", late, lists)
	}
}

// TestDefinitionsOfOtherGroupsAskForNothing.
func TestDefinitionsOfOtherGroupsAskForNothing(t *testing.T) {
	definitions := definitionsClient()
	late, lists := timeUntilUsed(t, definitions, 0, func() {
		if err := definitions.Tracker().Create(definitionsResource(), definition("others.example.com"), ""); err != nil {
			t.Error(err)
		}
	})
	if late != 20*time.Second || lists != 1 {
		t.Errorf("used after %v, looked for %d times", late, lists)
	}
}

// TestAKindIsUsedWithoutAWatchOfDefinitions: the right to it is missing, or each watch is cut and no list is answered.
func TestAKindIsUsedWithoutAWatchOfDefinitions(t *testing.T) {
	for name, err := range map[string]error{
		"refused": apierrors.NewForbidden(definitionsResource().GroupResource(), "", errors.New("no right")),
		"cut":     errors.New("connection reset"),
	} {
		t.Run(name, func(t *testing.T) {
			definitions := definitionsClient()
			definitions.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
			definitions.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(nil, err))
			if late, _ := timeUntilUsed(t, definitions, 0, func() {}); late > KindsPeriod {
				t.Errorf("used after %v", late)
			}
		})
	}
}
