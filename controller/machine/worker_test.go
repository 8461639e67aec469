package machine

import (
	"context"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/configure"
)

// TestOneWorkerReplacesAtATime, from the look at the other Machines to the deletion.
func TestOneWorkerReplacesAtATime(t *testing.T) {
	o := newOperator(t, refusesLogin)
	o.machine("set", "refuses", "192.0.2.41")
	node := o.machine("nodes", "node", "192.0.2.42", hasNode)
	looks, deletions := 0, 0
	isHeld := func(what string) {
		if o.replacing.TryLock() {
			o.replacing.Unlock()
			t.Errorf("%s: another worker may replace a Machine too", what)
		}
	}
	o.intercept(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*machinev1beta1.MachineList); ok {
				looks++
				isHeld("the look")
			}
			return c.List(ctx, list, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			deletions++
			isHeld("the deletion")
			return c.Delete(ctx, object, options...)
		},
	})
	o.reconcile("refuses")
	o.now = loginWithin + 1
	o.reconcile("refuses")
	_, err := o.ReplaceNode(t.Context(), node.UID, "because")
	must(t, err)
	if looks < 2 || deletions != 2 {
		t.Errorf("%d looks, %d deletions", looks, deletions)
	}
}

// TestWhatTheAPIServerHasDecides, and not what the cache of the operator has.
func TestWhatTheAPIServerHasDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*machinev1beta1.Machine)
		why    string
	}{
		"it is being deleted":                   {func(m *machinev1beta1.Machine) { m.DeletionTimestamp = new(metav1.Now()) }, whyDeleting},
		"its MachineSet is no controller of it": {func(m *machinev1beta1.Machine) { m.OwnerReferences[0].Controller = nil }, "no MachineSet owns it"},
		"it has a Node":                         {hasNode, "it has a Node since"},
	} {
		o := newOperator(t, refusesLogin)
		m := o.machine("set", "machine", "192.0.2.41")
		o.intercept(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			machines, ok := list.(*machinev1beta1.MachineList)
			if !ok {
				return c.List(ctx, list, options...)
			}
			live := m.DeepCopy()
			tt.change(live)
			machines.Items = []machinev1beta1.Machine{*live}
			return nil
		}})
		o.reconcile("machine")
		o.now = loginWithin + 1
		if got := o.reconcile("machine"); o.isDeleting(m) || !contains(got, "MachineDeletionRestricted", "it is not replaced: "+tt.why) {
			t.Errorf("%s: deleted %t, %q", name, o.isDeleting(m), got)
		}
	}
}

// TestAMachineOfANodeIsNotJudged: what machine-api has found a Node for is neither replaced nor too old, whatever its host refuses.
func TestAMachineOfANodeIsNotJudged(t *testing.T) {
	o := newOperator(t, refusesLogin)
	m := o.machine("set", "machine", "192.0.2.41", hasNode)
	for range 2 {
		if got := o.reconcile("machine"); o.isDeleting(m) || !contains(got, "MachineSetupFailure "+configure.ReasonLoginRefused) {
			t.Errorf("after %s: deleted %t, %q", o.now, o.isDeleting(m), got)
		}
		o.now += approvedWithin + 1
	}
}
