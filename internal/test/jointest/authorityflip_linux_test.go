package jointest_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lateDelete is a client to which something happens before each deletion.
type lateDelete struct {
	client.Client
	before func()
}

// Delete implements client.Client.
func (c lateDelete) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	c.before()
	return c.Client.Delete(ctx, o, opts...)
}

// TestAMachineIsMovedWhileItIsReplaced to the Cluster API and back, each time between the decision and the deletion: neither object is deleted
// then, and it counts as no replacement. The next try deletes the one that counts.
func TestAMachineIsMovedWhileItIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.movedMachines()
	server.Load(t, filepath.Join("..", "..", "..", "deploy", "cluster-api", "machines.yaml"))
	r := w.reconciler(refusesLogin)
	m := w.owned(w.machineSet("flip-set"), "flip", "192.0.2.47")
	original := w.originalOf(w.original("MachineSet", "flip-set", func(*unstructured.Unstructured) {}), "flip")
	w.belongsTo(m, machinev1beta1.MachineAuthorityMachineAPI)
	r.reconcile("flip")
	r.late = 31 * time.Minute
	direct := r.Machines.Client
	for _, to := range []machinev1beta1.MachineAuthority{machinev1beta1.MachineAuthorityMigrating, machinev1beta1.MachineAuthorityMachineAPI, machinev1beta1.MachineAuthorityClusterAPI} {
		moved := false
		r.Machines.Client = lateDelete{direct, func() {
			moved = true
			w.belongsTo(m, to)
		}}
		got := r.reconcile("flip")
		if w.isDeleting("flip") || w.isOriginalDeleting(original) {
			t.Errorf("moved to %s: deleted: %q", to, got)
		}
		if count := w.replaced("flip-set"); count != "" {
			t.Errorf("moved to %s: %q replacements are counted", to, count)
		}
		if !moved { // Migrating deletes nothing
			w.belongsTo(m, to)
		}
	}
	r.Machines.Client = direct
	if got := r.reconcile("flip"); w.isDeleting("flip") || !w.isOriginalDeleting(original) || w.replaced("flip-set") != "1" {
		t.Errorf("at rest: %q", got)
	}
}
