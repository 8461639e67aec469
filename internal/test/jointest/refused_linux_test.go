package jointest_test

import (
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/configure/checks"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/faults"
	"wmco/internal/test/seed"
)

// refuseMachines takes the right to list Machines from the operator until it is given back.
func (w *world) refuseMachines() (give func()) {
	w.t.Helper()
	at := client.ObjectKey{Name: "windows-machine-config-operator"}
	set := func(rules []rbacv1.PolicyRule) {
		w.t.Helper()
		var role rbacv1.ClusterRole
		must(w.t, w.Get(w.t.Context(), at, &role))
		role.Rules = rules
		must(w.t, w.Update(w.t.Context(), &role))
	}
	var role rbacv1.ClusterRole
	must(w.t, w.Get(w.t.Context(), at, &role))
	set(slices.DeleteFunc(slices.Clone(role.Rules), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "machines") }))
	operator := w.asOperator()
	eventually(w.t, "the refusal", func() bool { return apierrors.IsForbidden(operator.List(w.t.Context(), &machinev1beta1.MachineList{})) })
	return func() { w.t.Helper(); set(role.Rules) }
}

// TestMachinesThatAreRefusedHoldOnlyTheirHosts: nothing of them is removed, entries join and leave, and their nodes get changes.
func TestMachinesThatAreRefusedHoldOnlyTheirHosts(t *testing.T) {
	w := newWorld(t)
	w.machine("machine-m", "192.0.2.150")
	w.machine("instance-a", "192.0.2.151")
	w.machine("instance-b", "192.0.2.152")
	w.machineObject("machine-m", "192.0.2.150")
	w.instances("192.0.2.151")
	stop := w.operate()
	w.allJoin([]string{"machine-m", "instance-a"})
	stop()
	told := func(name string) bundle.Digest {
		d, err := published.DecodeDesired(w.node(name).Annotations[published.DesiredAnnotation])
		must(t, err)
		return d.Bundle
	}
	recorded := func() record.Record {
		records, err := w.login().Records.LiveRecords(t.Context())
		must(t, err)
		r, _ := records.RecordOfNode("machine-m")
		return r
	}
	machine, has, is := w.node("machine-m").UID, told("machine-m"), recorded()

	give := w.refuseMachines()
	w.operate()
	eventually(t, "a condition", func() bool {
		c := w.condition(string(checks.APIsServed))
		return c.Status == metav1.ConditionFalse && c.Reason == reason.MachinesRefused && strings.Contains(c.Message, "machines.machine.openshift.io") && strings.Contains(c.Message, "fix: add the rule")
	})
	before := told("instance-a")
	w.create(mirrorSet("refused"))
	eventually(t, "a bundle for the node of an instance", func() bool { return told("instance-a") != before })
	w.addEntry("192.0.2.152")
	w.allJoin([]string{"instance-a", "instance-b"})
	w.removeEntry("192.0.2.152")
	eventually(t, "the removal of an instance", func() bool { return !w.hasNode("instance-b") && !w.pinned("192.0.2.152") })
	if n := w.findNode("machine-m"); n == nil || n.UID != machine || told("machine-m") != has || is.Machine == "" || recorded() != is {
		t.Error("the node of a Machine, what is published for it, or its record has changed")
	}
	if c := w.condition("InputsAccepted"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "machine-m") {
		t.Errorf("nothing says that the node of a Machine gets nothing new: %s", c.Message)
	}
	if strings.Contains(w.log.String(), "listing Machines: ") {
		t.Error("forgetting hosts that are gone, or the rollout, fails because Machines are refused")
	}

	give()
	eventually(t, "a bundle for the node of a Machine", func() bool { return told("machine-m") != has })
	w.machine("machine-n", "192.0.2.153")
	w.machineObject("machine-n", "192.0.2.153")
	w.allJoin([]string{"machine-m", "machine-n"})
	eventually(t, "the end of the condition", func() bool { return w.condition(string(checks.APIsServed)).Status == metav1.ConditionTrue })
}

// TestMachinesThatAreRefusedWhileTheOperatorWorks: its cache has what it had, which may be wrong by now. It reports that when the API server ends its
// watch, and holds the hosts of Machines as after a start.
func TestMachinesThatAreRefusedWhileTheOperatorWorks(t *testing.T) {
	w := newWorld(t)
	w.machine("machine-r", "192.0.2.155")
	w.machine("instance-r", "192.0.2.156")
	w.machineObject("machine-r", "192.0.2.155")
	w.instances("192.0.2.156")
	network := faults.New(seed.New(t).Uint64())
	options, err := w.settings().options(w.output())
	must(t, err)
	options.Config.Wrap(network.Wrap)
	w.operateWith(options)
	w.allJoin([]string{"machine-r", "instance-r"})
	eventually(t, "all kinds", func() bool { return w.condition(string(checks.APIsServed)).Status == metav1.ConditionTrue })

	give := w.refuseMachines()
	network.Set(faults.CutWatches) // an API server ends each watch within an hour
	eventually(t, "a condition", func() bool {
		c := w.condition(string(checks.APIsServed))
		return c.Status == metav1.ConditionFalse && c.Reason == reason.MachinesRefused
	})
	network.Set(faults.None)
	has, before := w.desiredOf("machine-r").Bundle, w.desiredOf("instance-r").Bundle
	w.create(mirrorSet("refused-later"))
	eventually(t, "a bundle for the node of an instance", func() bool { return w.desiredOf("instance-r").Bundle != before })
	if w.desiredOf("machine-r").Bundle != has || !w.joined("machine-r") {
		t.Error("what is published for the node of a Machine has changed")
	}

	give()
	eventually(t, "a bundle for the node of a Machine", func() bool { return w.desiredOf("machine-r").Bundle != has })
	eventually(t, "the end of the condition", func() bool { return w.condition(string(checks.APIsServed)).Status == metav1.ConditionTrue })
}
