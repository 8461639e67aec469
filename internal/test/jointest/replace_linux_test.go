package jointest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/machine"
	"wmco/controller/metrics"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/payload"
	"wmco/payload/store"
)

// broken is a transport to hosts that all have one fault.
type broken struct{ fault func(remote.Target) error }

func (b broken) Connect(_ context.Context, t remote.Target) error { return b.fault(t) }

func (b broken) Run(_ context.Context, t remote.Target, _ remote.Command) error { return b.fault(t) }

func (b broken) Transfer(_ context.Context, t remote.Target, _ func(remote.Files) error) error {
	return b.fault(t)
}

func (broken) Close() error { return nil }

func refusesLogin(t remote.Target) error {
	return &remote.AuthError{Target: t, Methods: []string{"publickey"}, Keys: 1, Err: errors.New("no supported methods remain")}
}

func unreachable(t remote.Target) error {
	return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errors.New("connection refused")}
}

func otherHostKey(t remote.Target) error {
	return &remote.HostKeyError{Target: t, Pinned: []string{"a"}, Offered: "b"}
}

// asOperator is a client with the permissions of the operator.
func (w *world) asOperator() client.Client {
	w.t.Helper()
	config := rest.CopyConfig(server.ControlPlane(w.t).Config)
	config.Impersonate = impersonated()
	c, err := client.New(config, client.Options{Scheme: w.Scheme()})
	must(w.t, err)
	return c
}

// reconciler is that of Machines, with a clock and a fault of all hosts. It reads what an operator has in its cache as an administrator.
type reconciler struct {
	*machine.Machines
	world    *world
	recorder *events.FakeRecorder
	// late is how much later it is than the clock says.
	late time.Duration
}

func (w *world) reconciler(fault func(remote.Target) error) *reconciler {
	w.t.Helper()
	r := &reconciler{world: w, recorder: events.NewFakeRecorder(100)}
	own := w.asOperator()
	begun := time.Now()
	now, elapsed := time.Now, func() time.Duration { return time.Since(begun) + r.late }
	files, err := store.Open(filepath.Join("..", "..", "..", "golden", "payload"))
	must(w.t, err)
	program, err := remote.FileProgram(programs.node)
	must(w.t, err)
	source := desired.Source{
		Objects: objects.NewClusterReader(w.Client), Set: files.Set(), Key: bundle.Key(strings.Repeat("k", 32)), Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: true},
	}
	records := &hosts.Records{Live: own, Client: own, Cache: w.Client, Namespace: gather.OperatorNamespace}
	login := &hosts.Login{Live: own, Client: own, Namespace: gather.OperatorNamespace, Records: records}
	versions := func(context.Context) ([]string, error) {
		return []string{payload.For(payload.Kubelet, payload.TestedKubernetes).Version}, nil
	}
	r.Machines = &machine.Machines{
		Joiner: &configure.Joiner{
			Counters: metrics.NewCounters(metrics.Known{}),
			Reader:   w.Client, Client: own, Inputs: func(ctx context.Context) (*desired.Hosts, error) {
				all, _, err := records.CachedRecords(ctx)
				source.Gather.Records = &all
				if err != nil {
					return nil, err
				}
				return desired.ReadHosts(ctx, source)
			},
			Hosts: hosts.New(hosts.Options{Transports: hosts.Transports{Kept: broken{fault}, Fresh: broken{fault}}, Program: program}), Login: login,
			Checks: &configure.Checks{Live: own, Login: login, Versions: versions, Now: now}, Version: "test", Log: logr.Discard(), Now: now, Silence: windowsnode.SilenceByKubelet, Random: rand.Read, Unjoined: &configure.Unjoined{},
		},
		Reader: w.Client, Live: own, Client: own, Events: r.recorder, Log: logr.Discard(), Now: now, Elapsed: elapsed,
		Replacements: machine.Replacements{Live: own, Client: own, Namespace: gather.OperatorNamespace},
	}
	return r
}

// reconcile returns the events about a Machine.
func (r *reconciler) reconcile(name string) []string {
	r.world.t.Helper()
	_, err := r.Reconcile(r.world.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "openshift-machine-api", Name: name}})
	must(r.world.t, err)
	var list []string
	for len(r.recorder.Events) > 0 {
		list = append(list, <-r.recorder.Events)
	}
	return list
}

// machineSet creates a MachineSet until the end of the test.
func (w *world) machineSet(name string) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}
	w.create(set)
	return set
}

// owned is a Machine of a MachineSet, which machine-api removes only when its host is gone.
func (w *world) owned(set *machinev1beta1.MachineSet, name, address string) *machinev1beta1.Machine {
	w.t.Helper()
	m := w.machineObject(name, address, "machine.machine.openshift.io")
	before := m.DeepCopy()
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: new(true),
	}}
	must(w.t, w.Patch(w.t.Context(), m, client.MergeFrom(before)))
	return m
}

// isDeleting reports whether somebody has deleted a Machine.
func (w *world) isDeleting(name string) bool {
	w.t.Helper()
	var m machinev1beta1.Machine
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "openshift-machine-api", Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return true
	}
	must(w.t, err)
	return m.DeletionTimestamp != nil
}

// remove is what machine-api does at the end.
func (w *world) remove(m *machinev1beta1.Machine) {
	w.t.Helper()
	must(w.t, w.Patch(w.t.Context(), m.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(w.t, "the end of Machine "+m.Name, func() bool {
		return apierrors.IsNotFound(w.Get(w.t.Context(), client.ObjectKeyFromObject(m), &machinev1beta1.Machine{}))
	})
}

func contains(list []string, parts ...string) bool {
	return slices.ContainsFunc(list, func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	})
}

// TestOnlyALastingRefusalReplacesAMachine: of a MachineSet, one at a time, and two in a row.
func TestOnlyALastingRefusalReplacesAMachine(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler(refusesLogin)
	set, other := w.machineSet("set"), w.machineSet("other-set")
	first, second := w.owned(set, "first", "192.0.2.41"), w.owned(set, "second", "192.0.2.42")
	w.owned(other, "of-another", "192.0.2.43")
	w.machineObject("of-nobody", "192.0.2.44")

	if got := r.reconcile("first"); w.isDeleting("first") || len(got) > 0 {
		t.Errorf("a new Machine that refuses the login: deleted %v, events %q", w.isDeleting("first"), got)
	}
	for _, name := range []string{"second", "of-another", "of-nobody"} {
		r.reconcile(name)
	}
	r.late = 31 * time.Minute
	if got := r.reconcile("of-nobody"); w.isDeleting("of-nobody") || !contains(got, "MachineDeletionRestricted", "no MachineSet owns it") {
		t.Errorf("a Machine of no MachineSet: %q", got)
	}
	if got := r.reconcile("first"); !w.isDeleting("first") || !contains(got, "Normal MachineDeleted", "MachineSet set creates another one") {
		t.Errorf("a Machine that still refuses the login: %q", got)
	}
	if got := r.reconcile("second"); w.isDeleting("second") || !contains(got, "MachineDeletionRestricted", "first", "one at a time") {
		t.Errorf("while another one is being deleted: %q", got)
	}
	w.remove(first)
	if got := r.reconcile("second"); !w.isDeleting("second") {
		t.Errorf("after the other one is gone: %q", got)
	}
	w.remove(second)
	w.owned(set, "third", "192.0.2.45")
	r.reconcile("third")
	r.late = 62 * time.Minute
	if got := r.reconcile("third"); w.isDeleting("third") || !contains(got, "MachineDeletionRestricted", "2 Machines in a row of MachineSet set", "fix: ", "windows-user-data") {
		t.Errorf("after two replacements in a row: %q", got)
	}
	if got := r.reconcile("of-another"); !w.isDeleting("of-another") {
		t.Errorf("a Machine of another MachineSet: %q", got)
	}
}

// TestANewMachineIsNotReplaced: however old its object is by the clock of the operator, and however long it waited for its host, the limits
// count from the first refusal that this process saw.
func TestANewMachineIsNotReplaced(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler(refusesLogin)
	w.owned(w.machineSet("set"), "machine", "192.0.2.41")
	steps := []struct {
		what    string
		late    time.Duration
		deleted bool
	}{
		{"the clock of the operator is ahead by three hours", 3 * time.Hour, false},
		{"29 minutes later", 3*time.Hour + 29*time.Minute, false},
		{"31 minutes later", 3*time.Hour + 31*time.Minute, true},
	}
	for _, step := range steps {
		r.late = step.late
		if got := r.reconcile("machine"); w.isDeleting("machine") != step.deleted || contains(got, machine.ReasonTooOld) {
			t.Fatalf("%s: deleted %t, %q", step.what, w.isDeleting("machine"), got)
		}
	}
}

// TestAHostThatWasAwayMayRefuseTheLogin: it could not be reached for an hour, and sets up its SSH server since.
func TestAHostThatWasAwayMayRefuseTheLogin(t *testing.T) {
	w := newWorld(t)
	fault := unreachable
	r := w.reconciler(func(to remote.Target) error { return fault(to) })
	w.owned(w.machineSet("set"), "machine", "192.0.2.41")
	for _, r.late = range []time.Duration{0, time.Hour} {
		r.reconcile("machine")
	}
	fault = refusesLogin
	if got := r.reconcile("machine"); w.isDeleting("machine") {
		t.Errorf("it was deleted at once: %q", got)
	}
	r.late = 100 * time.Minute
	if r.reconcile("machine"); !w.isDeleting("machine") {
		t.Error("it was not deleted after 40 minutes of refusals")
	}
}

// TestManyRefusalsAtOnceReplaceOneMachine: the workers of the operator work at the same time.
func TestManyRefusalsAtOnceReplaceOneMachine(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler(refusesLogin)
	set := w.machineSet("set")
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("machine-%d", i))
		w.owned(set, names[i], fmt.Sprintf("192.0.2.%d", 51+i))
		r.reconcile(names[i])
	}
	r.late = 31 * time.Minute
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "openshift-machine-api", Name: name}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(names, w.isDeleting); n != 1 {
		t.Errorf("%d Machines of one MachineSet are deleted at once", n)
	}
}

// TestNothingElseDeletesAMachine: not in hours either.
func TestNothingElseDeletesAMachine(t *testing.T) {
	for name, test := range map[string]struct {
		fault  func(remote.Target) error
		reason string
	}{
		"unreachable":              {unreachable, configure.ReasonUnreachable},
		"the host key has changed": {otherHostKey, configure.ReasonHostKey},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.reconciler(test.fault)
			w.owned(w.machineSet("set"), "machine", "192.0.2.41")
			for _, r.late = range []time.Duration{0, 31 * time.Minute, 119 * time.Minute} {
				if got := r.reconcile("machine"); w.isDeleting("machine") || !contains(got, "Warning MachineSetupFailure "+test.reason, "fix: ") {
					t.Errorf("after %s: %q", r.late, got)
				}
			}
			for _, r.late = range []time.Duration{121 * time.Minute, 48 * time.Hour} {
				got := r.reconcile("machine")
				if w.isDeleting("machine") || !contains(got, "Warning MachineSetupFailure "+machine.ReasonTooOld, "without a Node for longer than 2h0m0s", "fix: delete the Machine") {
					t.Errorf("after %s: %q", r.late, got)
				}
			}
		})
	}
}

// replaced is how many Machines of a MachineSet were replaced in a row.
func (w *world) replaced(set string) string {
	w.t.Helper()
	var cm corev1.ConfigMap
	must(w.t, client.IgnoreNotFound(w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-machine-replacements"}, &cm)))
	return cm.Data[set]
}

// TestAMachineWithANodeIsNeverReplaced: after an upgrade of the operator, or with another private key, a Machine whose node works may refuse
// the login for good. A Node that is another host by the record proves nothing.
func TestAMachineWithANodeIsNeverReplaced(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler(refusesLogin)
	set, other := w.machineSet("set"), w.machineSet("other-set")
	w.owned(set, "works", "192.0.2.46")
	w.owned(other, "dead", "192.0.2.47")
	for name, address := range map[string]string{"works-node": "192.0.2.46", "liar": "192.0.2.47"} {
		w.otherNode(name, "windows", address)
		t.Cleanup(func() {
			must(t, client.IgnoreNotFound(w.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
		})
	}
	liar := w.node("liar")
	must(t, w.login().Records.UpdateRecord(t.Context(), record.OfEntry("192.0.2.99"), func(r record.Record) (record.Record, error) {
		r.Node, r.NodeUID = liar.Name, liar.UID
		return r, nil
	}))
	r.reconcile("works")
	r.reconcile("dead")
	r.late = 31 * time.Minute
	if got := r.reconcile("works"); w.isDeleting("works") || !contains(got, "MachineSetupFailure", "LoginRefused") {
		t.Errorf("a Machine whose node works: deleted %t, %q", w.isDeleting("works"), got)
	}
	if got := r.reconcile("dead"); !w.isDeleting("dead") {
		t.Errorf("a Machine whose address a Node of another host reports: %q", got)
	}
}
