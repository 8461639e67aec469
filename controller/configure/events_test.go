package configure

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"wmco/bundle/nodestate"
	"wmco/controller/status"
)

// written are the events that were recorded.
type written []string

func (w *written) Eventf(_, _ runtime.Object, kind, why, action, note string, args ...any) {
	*w = append(*w, kind+" "+why+" "+action+": "+fmt.Sprintf(note, args...))
}

// TestAnEventSaysHowAJoinEnded, and none how far it is.
func TestAnEventSaysHowAJoinEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		progress Progress
		want     written
	}{
		"it has joined": {
			Progress{State: StateJoined, Finished: true, Message: "node win-a has joined"}, written{"Normal Done Join: node win-a has joined"},
		},
		"it gets what it could not fetch": {
			Progress{State: StateJoining, NotFetched: "quay.example.com/team/wmco: 401 Unauthorized"},
			written{"Warning ExecutablesNotFetched Join: executables could not be fetched, and were sent over SSH: quay.example.com/team/wmco: 401 Unauthorized"},
		},
		"it joined before": {Progress{State: StateJoined}, nil},
		"it joins":         {Progress{State: StateJoining, Reason: ReasonRebooting, Message: "the host reboots"}, nil},
		"it failed": {
			Progress{State: StateFailed, Reason: ReasonHostKey, Message: "another key", Fix: "look"},
			written{"Warning Failure HostKeyChanged: HostKeyChanged: another key; fix: look"},
		},
		"it waits": {
			Progress{State: StateWaiting, Reason: ReasonSameHost, Message: "100% the same"}, written{"Warning Failure SameHost: SameHost: 100% the same"},
		},
	} {
		var got written
		RecordProgress(&got, &corev1.Node{}, tt.progress, "Done", "Failure")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestAnEventNamesAnEntry, with the UID of the ConfigMap where it can be read.
func TestAnEventNamesAnEntry(t *testing.T) {
	s := newScene(t)
	s.addConfigMap(InstancesName, nil)
	want := corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: InstancesName, UID: InstancesName,
		FieldPath: "data[10.0.140.21]",
	}
	if diff := cmp.Diff(&want, InstanceReference(t.Context(), s.client, namespace, hostA)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	want.UID, s.fails["get "+InstancesName] = "", errAPIServer
	if diff := cmp.Diff(&want, InstanceReference(t.Context(), s.client, namespace, hostA)); diff != "" {
		t.Errorf("an API server that fails: -want +got\n%s", diff)
	}
}

// TestWhichMachineIsToBeDeleted: where the Cluster API has the original, its.
func TestWhichMachineIsToBeDeleted(t *testing.T) {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	if got := FixByDeletion(m); got != "delete the Machine; its MachineSet creates another one" {
		t.Error(got)
	}
	m.Status.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
	const original = "delete the Machine in the Cluster API (oc delete machines.cluster.x-k8s.io m -n openshift-cluster-api); its MachineSet creates another one"
	if got := FixByDeletion(m); got != original {
		t.Error(got)
	}
}

// TestALoginThatFailsIsSaidOfItsNode until one succeeds; those who follow are told of a new reason alone.
func TestALoginThatFailsIsSaidOfItsNode(t *testing.T) {
	var u Unjoined
	calls := 0
	u.OnChange(func() { calls++ })
	refused := Progress{Reason: ReasonLoginRefused, Message: "no", Fix: "add the key"}
	for i, step := range []struct {
		progress Progress
		known    bool
		calls    int
	}{
		{Progress{}, false, 0}, {refused, true, 1}, {Progress{Reason: ReasonLoginRefused, Message: "no, by port 2"}, true, 1},
		{Progress{Reason: ReasonUnreachable, Message: "off"}, true, 2}, {Progress{}, false, 3}, {refused, true, 4},
	} {
		u.NoteLogin("win-a", hostA, step.progress)
		if _, known := u.LoginProblem("win-a"); known != step.known || calls != step.calls {
			t.Errorf("step %d: known %t, %d calls", i, known, calls)
		}
	}
	want := status.Host{
		Name: "win-a", Address: hostA, Node: "win-a", State: nodestate.Waiting,
		Reason: ReasonLoginRefused, Message: "no", Fix: "add the key",
	}
	got, _ := u.LoginProblem("win-a")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, known := u.LoginProblem("win-b"); known {
		t.Error("another node has it too")
	}
}

// TestHostsAreCountedByReason: those of failures are there with 0, so that a graph of them begins before the first.
func TestHostsAreCountedByReason(t *testing.T) {
	var u Unjoined
	u.RecordProgress("a", Progress{State: StateFailed, Reason: ReasonHostKey})
	u.RecordProgress("b", Progress{State: StateFailed, Reason: ReasonHostKey})
	u.RecordProgress("c", Progress{State: StateWaiting, Reason: "PrivateKeyMissing"})
	u.RecordProgress("d", Progress{State: StateJoined, Reason: ReasonJoined})
	want := map[string]int{"PrivateKeyMissing": 1}
	for _, reason := range FailureReasons() {
		want[reason] = 0
	}
	want[ReasonHostKey] = 2
	if diff := cmp.Diff(want, u.ByReason()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
