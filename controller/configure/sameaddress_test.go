package configure

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/controller/base"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestNoMachineOfTwoWithOneAddressIsReached: it is not known whose host it is.
func TestNoMachineOfTwoWithOneAddressIsReached(t *testing.T) {
	const (
		fix    = "; fix: check in the cloud which of the two Machines has a virtual machine with this address, and delete the other Machine"
		shared = "Waiting SameHost: Machine a and Machine b have the same address 10.0.140.21"
		left   = "; nothing is done on the host because of Machine a"
	)
	for name, tt := range map[string]struct {
		other func(*scene) *render.Node
		// ending is true for a Machine a that is being deleted.
		ending bool
		want   string
	}{
		"both":            {func(s *scene) *render.Node { return s.addMachine("b", hostA) }, false, shared + left + fix},
		"another address": {func(s *scene) *render.Node { return s.addMachine("b", hostB) }, false, registering},
		"its second address": {func(s *scene) *render.Node {
			n := s.addMachine("b", hostB)
			n.Addresses = []string{hostB, hostA}
			return n
		}, false, shared + left + fix},
		"the other is a node": {
			func(s *scene) *render.Node { n := s.addMachine("b", hostA); n.Name = "win-b"; return n }, false,
			shared + "; Machine b is node win-b" + left + fix,
		},
		"the other goes":        {func(s *scene) *render.Node { n := s.addMachine("b", hostA); n.Ending = true; return n }, false, registering},
		"it goes itself":        {func(s *scene) *render.Node { return s.addMachine("b", hostA) }, true, shared + left + fix},
		"both go":               {func(s *scene) *render.Node { n := s.addMachine("b", hostA); n.Ending = true; return n }, true, shared + left + fix},
		"the other is an entry": {func(s *scene) *render.Node { s.addEntry(hostA); return &s.inputs.All[1] }, false, registering},
	} {
		s := newScene(t)
		s.onlyMachine("a")
		tt.other(s)
		s.inputs.All[0].Ending = tt.ending
		p, err := s.joiner.JoinHost(t.Context(), Ref{Machine: "a"})
		must(t, err)
		if diff := cmp.Diff(tt.want, described(p)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if did := s.network.at[hostA].did; len(did) > 0 != (tt.want == registering) {
			t.Errorf("%s: done on the host: %v", name, did)
		}
	}
	s := newScene(t) // an entry has no Machine that could be deleted
	s.addMachine("b", hostA)
	if p := s.join(hostA); described(p) != registering {
		t.Error(described(p))
	}
}

// TestTheKeyOfTheHostBeforeIsForgotten where another host answers at an address since, and no other key is.
func TestTheKeyOfTheHostBeforeIsForgotten(t *testing.T) {
	const again = "Joining Completing: the pinned host key was that of the host which had the address before; it was removed"
	// mistaken pins for the Machine the key of a host that was at its address before, and is gone.
	mistaken := func(s *scene, key byte) {
		r := record.New(record.OfMachine("uid-m"))
		r.HostKey, r.Address = hosts.EncodeKey(hostKey(s.t, key)), hostA
		s.addRecord(r)
	}
	before := func(s *scene, node, address string, key byte) {
		r := s.recordOf("192.0.2.9", node, key)
		r.Address = address
		s.addRecord(r)
	}
	for name, tt := range map[string]struct {
		scene     func(*scene)
		forgotten bool
	}{
		"the host before had the key":     {func(s *scene) { mistaken(s, keyB); before(s, "win-z", hostA, keyB) }, true},
		"it is no other host's key":       {func(s *scene) { mistaken(s, keyB) }, false},
		"a host elsewhere has the key":    {func(s *scene) { mistaken(s, keyB); before(s, "win-z", hostB, keyB) }, false},
		"the host before had another key": {func(s *scene) { mistaken(s, keyB); before(s, "win-z", hostA, 12) }, false},
		"the host before was no Node":     {func(s *scene) { mistaken(s, keyB); before(s, "", hostA, keyB) }, false},
		"the host is a Node by its own record": {func(s *scene) {
			mistaken(s, keyB)
			must(s.t, s.joiner.Login.Records.UpdateRecord(s.t.Context(), record.OfMachine("uid-m"), func(r record.Record) (record.Record, error) {
				r.Node = "win-a"
				return r, nil
			}))
			before(s, "win-z", hostA, keyB)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.onlyMachine("m")
			tt.scene(s)
			p := s.join(hostA)
			if got := described(p); got == again != tt.forgotten || !tt.forgotten && p.Reason != ReasonHostKey {
				t.Error(got)
			}
			if r := s.record(record.OfMachine("uid-m")); (r.HostKey == "") != tt.forgotten {
				t.Errorf("the record: %+v", r)
			}
			if p = s.join(hostA); tt.forgotten && described(p) != registering {
				t.Errorf("the next contact: %s", described(p))
			}
		})
	}
	s := newScene(t) // the host of a Node is never taken for another one
	s.onlyMachine("m")
	mistaken(s, keyB)
	before(s, "win-z", hostA, keyB)
	s.host(hostA).Name = "win-a"
	if p := s.hostAt(hostA).applyHostBundle(t.Context()); p.Reason != ReasonHostKey || s.record(record.OfMachine("uid-m")).HostKey == "" {
		t.Errorf("of a Node: %s", described(p))
	}
}

// TestAKeyThatWasPinnedBeforeTheMachineIsForgotten where another host answers: it may be the one which had the address before. A key
// that a person may have pinned for this Machine is kept.
func TestAKeyThatWasPinnedBeforeTheMachineIsForgotten(t *testing.T) {
	for name, tt := range map[string]struct {
		// written is when the key was pinned, zero if that is not known; created is when the Machine was, zero if it does not exist.
		written, created time.Time
		change           func(*scene)
		forgotten        bool
	}{
		"before":                      {noon(), noon().Add(time.Hour), nil, true},
		"after":                       {noon(), noon().Add(-time.Hour), nil, false},
		"at once":                     {noon(), noon(), nil, false},
		"at a time that is not known": {time.Time{}, noon(), nil, false},
		"the Machine does not exist":  {noon(), time.Time{}, nil, false},
		"a Node reports the address":  {noon(), noon().Add(time.Hour), func(s *scene) { s.host(hostA).ClaimedBy = "win-a" }, false},
		"the Machine has another UID": {noon(), noon().Add(time.Hour), func(s *scene) { s.host(hostA).MachineUID = "other" }, false},
		"the host is an entry":        {noon(), noon().Add(time.Hour), func(s *scene) { s.inputs.All = nil; s.addEntry(hostA) }, false},
		"Machines cannot be listed":   {noon(), noon().Add(time.Hour), func(s *scene) { s.fails["list machines"] = errAPIServer }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.onlyMachine("m")
			if !tt.created.IsZero() {
				must(t, s.client.Create(t.Context(), &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: base.MachinesNamespace, Name: "m", UID: types.UID("uid-m"), CreationTimestamp: metav1.NewTime(tt.created),
				}}))
			}
			key := hosts.EncodeKey(hostKey(t, keyB))
			pins := s.addConfigMap(hosts.PinsConfigMap, map[string]string{hostA: key, hostB: key})
			if !tt.written.IsZero() {
				at := metav1.NewTime(tt.written)
				s.pinsWritten = []metav1.ManagedFieldsEntry{{
					Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:data":{"f:%s":{},"f:%s":{}}}`, hostA, hostB)),
				}}
			}
			if tt.change != nil {
				tt.change(s)
			}
			p := s.hostAt(hostA).applyHostBundle(t.Context())
			clear(s.fails)
			must(t, s.client.Get(t.Context(), keyOf(pins), pins))
			if _, kept := pins.Data[hostA]; kept == tt.forgotten || pins.Data[hostB] == "" {
				t.Errorf("%s, pins %v", described(p), pins.Data)
			}
			if again := p.State == StateJoining; again != tt.forgotten {
				t.Error(described(p))
			}
		})
	}
}
