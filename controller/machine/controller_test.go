package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/applier/remote"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
)

// joinedNode is the Node of a host that has joined, with its record.
func (o *operator) joinedNode(m *machinev1beta1.Machine, name, address string) *corev1.Node {
	o.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "uid-of-node", Labels: map[string]string{corev1.LabelOSStable: "windows"}, Annotations: map[string]string{published.VersionAnnotation: "test"},
	}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	must(o.t, o.Create(o.t.Context(), node))
	must(o.t, o.Joiner.Login.Records.UpdateRecord(o.t.Context(), record.OfMachine(m.UID), func(r record.Record) (record.Record, error) {
		r.Node, r.NodeUID, r.Address = name, "uid-of-node", address
		return r, nil
	}))
	return node
}

// TestAJoinedHostNeedsNoInputs: the record is enough, as long as it is so.
func TestAJoinedHostNeedsNoInputs(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*operator)
		needs  bool
	}{
		"it has joined":        {func(*operator) {}, false},
		"it has moved":         {func(o *operator) { o.changeStatus("machine", at("192.0.2.42")) }, true},
		"its Node has no mark": {func(o *operator) { o.annotate("win-a", nil) }, true},
		"its Node is gone": {func(o *operator) {
			must(o.t, o.Delete(o.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}))
		}, true},
	} {
		o := newOperator(t, refusesLogin)
		o.joinedNode(o.machine("set", "machine", "192.0.2.41"), "win-a", "192.0.2.41")
		tt.change(o)
		read, asked := o.Joiner.Inputs, false
		o.Joiner.Inputs = func(ctx context.Context) (*desired.Hosts, error) {
			asked = true
			return read(ctx)
		}
		if got := o.reconcile("machine"); asked != tt.needs || !asked && len(got) > 0 {
			t.Errorf("%s: inputs read %t, want %t; %q", name, asked, tt.needs, got)
		}
	}
}

func at(address string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Status.Addresses[0].Address = address }
}

// annotate gives a Node these annotations and no others.
func (o *operator) annotate(name string, annotations map[string]string) {
	o.t.Helper()
	var node corev1.Node
	must(o.t, o.WithWatch.Get(o.t.Context(), client.ObjectKey{Name: name}, &node))
	node.Annotations = annotations
	must(o.t, o.Update(o.t.Context(), &node))
}

// TestAMachineThatLeavesIsLeftAlone: its host is not reached any more, and not reported.
func TestAMachineThatLeavesIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*operator, *machinev1beta1.Machine){
		"it is being deleted":       func(o *operator, m *machinev1beta1.Machine) { must(o.t, o.Delete(o.t.Context(), m)) },
		"it has the label to do so": func(o *operator, m *machinev1beta1.Machine) { ignores(m); must(o.t, o.Update(o.t.Context(), m)) },
		"it is gone": func(o *operator, m *machinev1beta1.Machine) {
			o.remove(m)
			must(o.t, o.Delete(o.t.Context(), m))
		},
	} {
		o := newOperator(t, func(remote.Target) error {
			t.Errorf("%s: the host is reached", name)
			return nil
		})
		change(o, o.machine("set", "machine", "192.0.2.41"))
		result, err := o.Reconcile(t.Context(), requestOf("machine"))
		if got := o.events(); err != nil || len(got) > 0 || !result.IsZero() {
			t.Errorf("%s: %q, %+v, %v", name, got, result, err)
		}
	}
}

// TestARefusalAfterTheHostHasJoined counts from then.
func TestARefusalAfterTheHostHasJoined(t *testing.T) {
	o := newOperator(t, refusesLogin)
	m := o.machine("set", "machine", "192.0.2.41")
	o.reconcile("machine")
	node := o.joinedNode(m, "win-a", "192.0.2.41")
	o.reconcile("machine")
	must(t, o.Joiner.Login.Records.ForgetRecord(t.Context(), record.OfMachine(m.UID)))
	must(t, o.Delete(t.Context(), node))
	o.now = 31 * time.Minute
	if got := o.reconcile("machine"); o.isDeleting(m) || len(got) > 0 {
		t.Errorf("deleted %t: %q", o.isDeleting(m), got)
	}
}

// TestReplacementsAreCounted until one of the MachineSet has joined. A value that a person wrote counts as too many, and one of older versions has no UID.
func TestReplacementsAreCounted(t *testing.T) {
	o := newOperator(t, refusesLogin)
	r := o.Replacements
	edit := func(text string) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"set":"`+text+`"}}`))
		must(t, o.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: replacementsName}}, patch))
	}
	must(t, r.resetReplacements(t.Context(), "set")) // of none
	for _, step := range []struct {
		what string
		do   func()
		want replaced
	}{
		{"none", func() {}, replaced{}},
		{"one", func() { must(t, r.noteReplacement(t.Context(), "set", replaced{1, "first"})) }, replaced{1, "first"}},
		{"two", func() { must(t, r.noteReplacement(t.Context(), "set", replaced{2, "second"})) }, replaced{2, "second"}},
		{"another MachineSet", func() { must(t, r.noteReplacement(t.Context(), "other", replaced{1, "x"})) }, replaced{2, "second"}},
		{"one has joined", func() { must(t, r.resetReplacements(t.Context(), "set")) }, replaced{}},
		{"an older version", func() { edit("1") }, replaced{count: 1}},
		{"a person", func() { edit("none") }, replaced{count: replacementsInARow}},
	} {
		step.do()
		got, err := r.countReplacements(t.Context(), "set")
		must(t, err)
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
		}
	}
	if o.replaced("other") != "1" {
		t.Errorf("the count of another MachineSet is %q", o.replaced("other"))
	}
}

// TestADeletionThatWasOnlyNotedIsNone: the API server has failed, or the operator has ended. The Machine is deleted with the next try, and another one
// of its MachineSet is replaced if this one need not be any more.
func TestADeletionThatWasOnlyNotedIsNone(t *testing.T) {
	for _, authority := range []machinev1beta1.MachineAuthority{machinev1beta1.MachineAuthorityMachineAPI, machinev1beta1.MachineAuthorityClusterAPI} {
		o := newOperator(t, refusesLogin, originalKind())
		list := map[string]*machinev1beta1.Machine{}
		for i, name := range []string{"first", "second"} {
			list[name] = o.machine("set", name, fmt.Sprintf("192.0.2.%d", 41+i), hasNode, belongsTo(authority))
			o.original("set", name)
		}
		broken := errors.New("no answer")
		o.intercept(interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return broken }})
		for _, name := range []string{"first", "first"} {
			if why, err := o.ReplaceNode(t.Context(), list[name].UID, "because"); !errors.Is(err, broken) || why != "" {
				t.Fatalf("%s %s: %q, %v", authority, name, why, err)
			}
		}
		if authority == machinev1beta1.MachineAuthorityMachineAPI {
			if why, err := o.ReplaceNode(t.Context(), list["second"].UID, "because"); !errors.Is(err, broken) || why != "" {
				t.Fatalf("second: %q, %v", why, err)
			}
		}
		o.intercept(interceptor.Funcs{})
		why, err := o.ReplaceNode(t.Context(), list["first"].UID, "because")
		if must(t, err); why != "" || o.replaced("set") != "1" {
			t.Errorf("%s: %q, counted %q", authority, why, o.replaced("set"))
		}
		if why, err := o.ReplaceNode(t.Context(), list["second"].UID, "because"); err != nil || why == "" {
			t.Errorf("%s: two at once: %v", authority, err)
		}
	}
}

// TestAMachineThatJoinsEndsTheCount of its MachineSet alone.
func TestAMachineThatJoinsEndsTheCount(t *testing.T) {
	o := newOperator(t, refusesLogin)
	o.machine("set", "of-set", "192.0.2.41")
	o.machine("", "of-none", "192.0.2.42")
	for _, set := range []string{"set", "other"} {
		must(t, o.Replacements.noteReplacement(t.Context(), set, replaced{1, "uid"}))
	}
	must(t, o.EndReplacing(t.Context(), "of-none"))
	if got := o.replaced("set"); got != "1" {
		t.Errorf("a Machine of no MachineSet: the count is %q", got)
	}
	broken := errors.New("no answer")
	o.intercept(interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return broken
	}})
	if err := o.EndReplacing(t.Context(), "of-set"); !errors.Is(err, broken) || o.replaced("set") != "1" {
		t.Errorf("%v, the count is %q", err, o.replaced("set"))
	}
	o.intercept(interceptor.Funcs{})
	must(t, o.EndReplacing(t.Context(), "of-set"))
	if set, other := o.replaced("set"), o.replaced("other"); set != "" || other != "1" {
		t.Errorf("the counts are %q and %q", set, other)
	}
	if err := o.EndReplacing(t.Context(), "gone"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestNothingIsDeletedThatCannotBeCounted, or decided: it would be deleted again and again.
func TestNothingIsDeletedThatCannotBeCounted(t *testing.T) {
	broken := errors.New("no answer")
	isCount := func(o client.Object) bool { return o.GetName() == replacementsName }
	for name, tt := range map[string]struct {
		funcs interceptor.Funcs
		text  string
	}{
		"the count cannot be read": {interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == replacementsName {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		}}, "reading ConfigMap windows-machine-replacements: no answer"},
		"the count cannot be written": {interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if isCount(o) {
				return broken
			}
			return c.Patch(ctx, o, p, opts...)
		}}, "noting that a Machine is replaced: no answer"},
		"the Machines cannot be listed": {interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return broken
		}}, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, refusesLogin)
			m := o.machine("set", "machine", "192.0.2.41")
			o.reconcile("machine")
			o.now = 31 * time.Minute
			o.intercept(tt.funcs)
			if got := o.reconcile("machine"); o.isDeleting(m) || !contains(got, "MachineSetupFailure", "; and replacing the Machine: "+tt.text) {
				t.Errorf("deleted %t: %q", o.isDeleting(m), got)
			}
			if why, err := o.ReplaceNode(t.Context(), m.UID, "because"); err == nil || !strings.Contains(err.Error(), tt.text) || o.isDeleting(m) {
				t.Errorf("deleted %t: %q, %v", o.isDeleting(m), why, err)
			}
		})
	}
}

// TestWhatChangesOfANodeIsLookedAt: the Machine that it is by the record, and those with an address that it reports.
func TestWhatChangesOfANodeIsLookedAt(t *testing.T) {
	o := newOperator(t, refusesLogin)
	own := o.machine("set", "own", "192.0.2.41")
	for name, address := range map[string]string{"reported": "192.0.2.42", "another": "192.0.2.43"} {
		o.machine("set", name, address)
	}
	node := o.joinedNode(own, "win-a", "192.0.2.42")
	var got []string
	for _, r := range o.machinesOfNode(t.Context(), node) {
		got = append(got, r.String())
	}
	if diff := cmp.Diff([]string{base.MachinesNamespace + "/own", base.MachinesNamespace + "/reported"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Machines.Reader = interceptor.NewClient(o.WithWatch, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}})
	if got := o.machinesOfNode(t.Context(), node); len(got) > 0 {
		t.Errorf("%v without a list", got)
	}
}

// TestWhatCannotBeReadIsTriedAgain: no Machine is judged by half of the facts.
func TestWhatCannotBeReadIsTriedAgain(t *testing.T) {
	broken := errors.New("no answer")
	for name, get := range map[string]func(client.Object) bool{
		"the Machine": func(o client.Object) bool { _, ok := o.(*machinev1beta1.Machine); return ok },
		"the Node":    func(o client.Object) bool { _, ok := o.(*corev1.Node); return ok },
	} {
		o := newOperator(t, refusesLogin)
		o.joinedNode(o.machine("set", "machine", "192.0.2.41"), "win-a", "192.0.2.41")
		reader := interceptor.NewClient(o.WithWatch, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if get(object) {
				return broken
			}
			return c.Get(ctx, key, object, opts...)
		}})
		o.Machines.Reader, o.Joiner.Reader = reader, reader
		if _, err := o.Reconcile(t.Context(), requestOf("machine")); !errors.Is(err, broken) || len(o.events()) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
