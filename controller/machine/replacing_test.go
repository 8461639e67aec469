package machine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/remote"
	"wmco/controller/configure"
	"wmco/controller/windowsnode/record"
)

// TestOnlyALastingRefusalReplacesAMachine: of a MachineSet, one at a time, and two in a row.
func TestOnlyALastingRefusalReplacesAMachine(t *testing.T) {
	o := newOperator(t, refusesLogin)
	first, second := o.machine("set", "first", "192.0.2.41"), o.machine("set", "second", "192.0.2.42")
	ofAnother, ofNone := o.machine("other-set", "of-another", "192.0.2.43"), o.machine("", "of-none", "192.0.2.44")

	if got := o.reconcile("first"); o.isDeleting(first) || len(got) > 0 {
		t.Errorf("a new Machine that refuses the login: deleted %t, events %q", o.isDeleting(first), got)
	}
	for _, name := range []string{"second", "of-another", "of-none"} {
		o.reconcile(name)
	}
	o.now = 31 * time.Minute
	if got := o.reconcile("of-none"); o.isDeleting(ofNone) || !contains(got, "MachineDeletionRestricted", "no MachineSet owns it") {
		t.Errorf("a Machine of no MachineSet: %q", got)
	}
	if got := o.reconcile("first"); !o.isDeleting(first) || !contains(got, "Normal MachineDeleted", "MachineSet set creates another one") {
		t.Errorf("a Machine that still refuses the login: %q", got)
	}
	if got := o.reconcile("second"); o.isDeleting(second) || !contains(got, "MachineDeletionRestricted", "first", "one at a time") {
		t.Errorf("while another one is being deleted: %q", got)
	}
	o.remove(first)
	if got := o.reconcile("second"); !o.isDeleting(second) {
		t.Errorf("after the other one is gone: %q", got)
	}
	o.remove(second)
	third := o.machine("set", "third", "192.0.2.45")
	o.reconcile("third")
	o.now = 62 * time.Minute
	if got := o.reconcile("third"); o.isDeleting(third) || !contains(got, "MachineDeletionRestricted", "2 Machines in a row of MachineSet set", "fix: ", "windows-user-data") {
		t.Errorf("after two replacements in a row: %q", got)
	}
	if got := o.reconcile("of-another"); !o.isDeleting(ofAnother) {
		t.Errorf("a Machine of another MachineSet: %q", got)
	}
}

// TestANewMachineIsNotReplaced: however old its object is, and however long this process has run, the limits count from the first refusal that
// this process saw.
func TestANewMachineIsNotReplaced(t *testing.T) {
	o := newOperator(t, refusesLogin)
	m := o.machine("set", "machine", "192.0.2.41", func(m *machinev1beta1.Machine) {
		m.CreationTimestamp = metav1.NewTime(time.Now().Add(-3 * time.Hour))
	})
	for _, step := range []struct {
		what    string
		now     time.Duration
		deleted bool
	}{
		{"the first refusal", 3 * time.Hour, false},
		{"29 minutes later", 3*time.Hour + 29*time.Minute, false},
		{"31 minutes later", 3*time.Hour + 31*time.Minute, true},
	} {
		o.now = step.now
		if got := o.reconcile("machine"); o.isDeleting(m) != step.deleted || contains(got, ReasonTooOld) {
			t.Fatalf("%s: deleted %t, %q", step.what, o.isDeleting(m), got)
		}
	}
}

// TestAnotherMachineOfTheNameOrAnotherHostBeginsAnew: what the one before it refused counts for neither.
func TestAnotherMachineOfTheNameOrAnotherHostBeginsAnew(t *testing.T) {
	for name, change := range map[string]func(*operator, *machinev1beta1.Machine){
		"another Machine, while this process did not look": func(o *operator, m *machinev1beta1.Machine) {
			o.remove(m)
			must(t, o.Delete(t.Context(), m))
			o.machine("set", "machine", "192.0.2.41", func(m *machinev1beta1.Machine) { m.UID = "another" })
		},
		"another Machine": func(o *operator, m *machinev1beta1.Machine) {
			o.remove(m)
			must(t, o.Delete(t.Context(), m))
			o.reconcile("machine")
			o.machine("set", "machine", "192.0.2.41")
		},
		"another address": func(o *operator, _ *machinev1beta1.Machine) {
			o.changeStatus("machine", func(m *machinev1beta1.Machine) { m.Status.Addresses[0].Address = "192.0.2.42" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, refusesLogin)
			m := o.machine("set", "machine", "192.0.2.41")
			o.reconcile("machine")
			change(o, m)
			o.now = 31 * time.Minute
			if got := o.reconcile("machine"); o.isDeleting(m) {
				t.Errorf("it is deleted at its first refusal: %q", got)
			}
		})
	}
}

// TestAHostThatWasAwayMayRefuseTheLogin: it could not be reached for an hour, and sets up its SSH server since.
func TestAHostThatWasAwayMayRefuseTheLogin(t *testing.T) {
	fault := unreachable
	o := newOperator(t, func(to remote.Target) error { return fault(to) })
	m := o.machine("set", "machine", "192.0.2.41")
	for _, o.now = range []time.Duration{0, time.Hour} {
		o.reconcile("machine")
	}
	fault = refusesLogin
	if got := o.reconcile("machine"); o.isDeleting(m) {
		t.Errorf("it was deleted at once: %q", got)
	}
	o.now = 100 * time.Minute
	if o.reconcile("machine"); !o.isDeleting(m) {
		t.Error("it was not deleted after 40 minutes of refusals")
	}
}

// TestManyRefusalsAtOnceReplaceOneMachine: the workers of the operator work at the same time.
func TestManyRefusalsAtOnceReplaceOneMachine(t *testing.T) {
	o := newOperator(t, refusesLogin)
	var list []*machinev1beta1.Machine
	for i := range 8 {
		list = append(list, o.machine("set", fmt.Sprintf("machine-%d", i), fmt.Sprintf("192.0.2.%d", 51+i)))
		o.reconcile(list[i].Name)
	}
	o.now = 31 * time.Minute
	var all sync.WaitGroup
	for _, m := range list {
		all.Go(func() {
			if _, err := o.Reconcile(t.Context(), requestOf(m.Name)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	deleted := slices.DeleteFunc(list, func(m *machinev1beta1.Machine) bool { return !o.isDeleting(m) })
	if len(deleted) != 1 || o.replaced("set") != "1" {
		t.Errorf("%d Machines of one MachineSet are deleted at once, %q are counted", len(deleted), o.replaced("set"))
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
			o := newOperator(t, test.fault)
			m := o.machine("set", "machine", "192.0.2.41")
			for _, o.now = range []time.Duration{0, 31 * time.Minute, 119 * time.Minute} {
				if got := o.reconcile("machine"); o.isDeleting(m) || !contains(got, "Warning MachineSetupFailure "+test.reason, "fix: ") {
					t.Errorf("after %s: %q", o.now, got)
				}
			}
			for _, o.now = range []time.Duration{121 * time.Minute, 48 * time.Hour} {
				got := o.reconcile("machine")
				if o.isDeleting(m) || !contains(got, "Warning MachineSetupFailure "+ReasonTooOld, "without a Node for longer than 2h0m0s", "fix: delete the Machine") {
					t.Errorf("after %s: %q", o.now, got)
				}
			}
		})
	}
}

// TestAMachineWithANodeIsNeverReplaced: after an upgrade of the operator, or with another private key, a Machine whose node works may refuse the
// login for good. A Node that is another host by the record proves nothing.
func TestAMachineWithANodeIsNeverReplaced(t *testing.T) {
	o := newOperator(t, refusesLogin)
	works, found, dead := o.machine("set", "works", "192.0.2.46"), o.machine("found-set", "found", "192.0.2.48", hasNode), o.machine("dead-set", "dead", "192.0.2.47")
	for name, address := range map[string]string{"works-node": "192.0.2.46", "liar": "192.0.2.47"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-node", Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		must(t, o.Create(t.Context(), node))
	}
	must(t, o.Joiner.Login.Records.UpdateRecord(t.Context(), record.OfEntry("192.0.2.99"), func(r record.Record) (record.Record, error) {
		r.Node, r.NodeUID = "liar", "uid-of-node"
		return r, nil
	}))
	for _, name := range []string{"works", "found", "dead"} {
		o.reconcile(name)
	}
	o.now = 31 * time.Minute
	for _, m := range []*machinev1beta1.Machine{works, found} {
		if got := o.reconcile(m.Name); o.isDeleting(m) || !contains(got, "MachineSetupFailure", "LoginRefused") {
			t.Errorf("a Machine whose node works: deleted %t, %q", o.isDeleting(m), got)
		}
	}
	if got := o.reconcile("dead"); !o.isDeleting(dead) {
		t.Errorf("a Machine whose address a Node of another host reports: %q", got)
	}
}

// TestOneMachineOfNodesIsReplacedAtATime: of a MachineSet, while all others have Nodes, and the next one when another one has joined.
func TestOneMachineOfNodesIsReplacedAtATime(t *testing.T) {
	o := newOperator(t, refusesLogin)
	first, second := o.machine("set", "first", "192.0.2.41"), o.machine("set", "second", "192.0.2.42")
	ignored, alone := o.machine("ignored-set", "ignored", "192.0.2.43", ignores), o.machine("", "alone", "192.0.2.44")
	replace := func(m *machinev1beta1.Machine) string {
		t.Helper()
		why, err := o.ReplaceNode(t.Context(), m.UID, "because")
		must(t, err)
		return why
	}
	refuses := func(m *machinev1beta1.Machine, text string) {
		t.Helper()
		if why := replace(m); !strings.Contains(why, text) || o.isDeleting(m) {
			t.Errorf("%s: deleted %t, %q", m.Name, o.isDeleting(m), why)
		}
		if got := o.events(); !contains(got, "Warning MachineDeletionRestricted because; it is not replaced: ", text) {
			t.Errorf("%s: %q", m.Name, got)
		}
	}
	refuses(first, "Machine second of the same MachineSet has no Node")
	refuses(alone, "no MachineSet owns it")
	refuses(ignored, "ignore")
	o.changeStatus("first", hasNode)
	o.changeStatus("second", hasNode)
	if why := replace(first); why != "" || !o.isDeleting(first) || !contains(o.events(), "Normal MachineDeleted because; MachineSet set creates another one") {
		t.Fatalf("it is not deleted: %q", why)
	}
	refuses(second, "first of the same MachineSet is being deleted")
	o.remove(first)
	if why := replace(first); why != "it is being deleted already" {
		t.Errorf("a Machine that is gone: %q", why)
	}
	refuses(second, "none has joined since; fix: ")
}

func ignores(m *machinev1beta1.Machine) { m.Labels[configure.LabelIgnore] = configure.ValueTrue }
