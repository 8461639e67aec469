package fleettest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/steps"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
)

// wmco runs a command line of the program as an administrator of the cluster.
func (f *fleet) wmco(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.Command, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), "KUBECONFIG="+f.plane.Kubeconfig), t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("wmco %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkBootsByHand: a person asks for the boot of two hosts. One node after the other is drained, boots once and is given back. On the first one a
// PodDisruptionBudget keeps a pod: the other pod is evicted, the budget is named, and neither host boots before it is gone.
func (f *fleet) checkBootsByHand(t *testing.T) {
	o, r := f.watch(t), f.read(t)
	asked := f.machines[3:5]
	labels := map[string]string{"app": "boots"}
	for _, m := range asked {
		f.runPod(t, "kept-"+m.name, m.name, labels)
		f.runPod(t, "free-"+m.name, m.name, nil)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "boots"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	must(t, f.Create(t.Context(), budget))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(f.Delete(context.Background(), budget))) })
	f.wmco(t, "reboot", asked[0].name, asked[1].name)
	t.Cleanup(func() {
		for _, m := range asked {
			must(t, f.Patch(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}, mergePatch(`{"metadata":{"annotations":{"`+published.RebootAnnotation+`":null}}}`)))
		}
	})
	var held *machine
	eventually(t, "an event about what blocks the drain", func() bool {
		for _, m := range asked {
			for _, note := range f.notes(t, drains.EventDrainBlocked, m.name) {
				if strings.Contains(note, "default/kept-"+m.name+" by PodDisruptionBudget boots") {
					held = m
				}
			}
		}
		return held != nil
	})
	eventually(t, "the eviction of the pod without a budget", func() bool {
		return apierrors.IsNotFound(f.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "free-" + held.name}, &corev1.Pod{}))
	})
	for _, m := range asked {
		if n := f.node(t, m.name); m.since(t, r.machines[m.name]).Boots > 0 || n.Spec.Unschedulable != (m == held) {
			t.Errorf("%s has booted, or is not cordoned as it should be: %t", m.name, n.Spec.Unschedulable)
		}
	}
	must(t, f.Delete(t.Context(), budget))
	eventually(t, "two nodes that have booted and are given back", func() bool { return !slices.ContainsFunc(asked, func(m *machine) bool { return !f.hasBooted(t, m) }) })
	if _, away, _ := o.MostSinceBegin(nil); away != 1 {
		t.Errorf("%d nodes were cordoned at once", away)
	}
	// The same value asks for nothing more, also when the agent starts again.
	for _, m := range asked {
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	f.rest(t)
	for _, m := range f.machines {
		wanted := 0
		if slices.Contains(asked, m) {
			wanted = 1
		}
		if got := m.since(t, r.machines[m.name]); got.Boots != wanted || got.Logins > 0 || wanted == 0 && len(got.Starts) > 0 {
			t.Errorf("%s: %+v, want %d boots", m.name, got, wanted)
		}
		if f.bundles(t)[m.name] != r.bundles[m.name] {
			t.Errorf("another bundle is published for %s", m.name)
		}
	}
}

// checkBootsForWindows: Windows of two hosts waits for a boot, and the settings ask the operator to see to it. One node after the other is drained, boots once
// and is given back. One that reports the same again boots no second time in the next hours.
func (f *fleet) checkBootsForWindows(t *testing.T) {
	o, r := f.watch(t), f.read(t)
	waiting := f.machines[:2]
	wait := func(m *machine, reasons ...bundle.BootReason) {
		t.Helper()
		must(t, m.Edit(t.Context(), func(s *simulation.State) { s.Facts.PendingBoots = reasons }))
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	bootReasons := func(m *machine) []bundle.BootReason {
		report, err := published.DecodeReport(f.node(t, m.name).Annotations[published.ReportAnnotation])
		if err != nil || report.Facts == nil {
			return nil
		}
		return report.Facts.PendingBoots
	}
	policy := func(m *machine) (value string) {
		t.Helper()
		must(t, m.Look(t.Context(), func(s *simulation.State) {
			value = s.Settings[simulation.SettingKey(bundle.KindPolicy, bundle.PolicyUpdates)].Value
		}))
		return value
	}
	wait(waiting[0], bundle.BootForUpdates)
	eventually(t, "the report of a host whose Windows waits", func() bool { return len(bootReasons(waiting[0])) == 1 })
	f.rest(t)
	if n := waiting[0].Boots() - r.machines[waiting[0].name].Boots; n != 0 {
		t.Fatalf("%d boots, and the settings ask for a report", n)
	}
	f.settings(t, `{rollout: {settle: 0s}, windowsReboots: Coordinate}`)
	wait(waiting[1], bundle.BootForComponents, bundle.BootForUpdates)
	eventually(t, "two nodes that have booted and are given back", func() bool {
		return !slices.ContainsFunc(waiting, func(m *machine) bool {
			n := f.node(t, m.name)
			return m.Boots() != r.machines[m.name].Boots+1 || len(bootReasons(m)) > 0 || !observer.IsCurrent(*n) || n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != ""
		})
	})
	if _, away, _ := o.MostSinceBegin(nil); away != 1 {
		t.Errorf("%d nodes were cordoned at once", away)
	}
	if notes := f.notes(t, steps.EventTurnBegun, waiting[0].name); !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "a Windows update was installed") }) {
		t.Errorf("the events are %q", notes)
	}
	wait(waiting[0], bundle.BootForUpdates)
	eventually(t, "the report of a host whose Windows waits again", func() bool { return len(bootReasons(waiting[0])) == 1 })
	f.rest(t)
	if out := f.wmco(t, "status", waiting[0].name); !strings.Contains(out, "after the last reboot") {
		t.Errorf("wmco status prints\n%s", out)
	}
	for _, m := range f.machines {
		if got := policy(m); got != bundle.UpdatesNotInstalled {
			t.Errorf("%s: Windows may boot by itself: %q", m.name, got)
		}
	}
	wait(waiting[0])
	f.settings(t, `{rollout: {settle: 0s}}`)
	eventually(t, "hosts with the policy of before", func() bool { return !slices.ContainsFunc(f.machines, func(m *machine) bool { return policy(m) != "" }) })
	f.rest(t)
	for _, m := range f.machines {
		wanted := 0
		if slices.Contains(waiting, m) {
			wanted = 1
		}
		if got := m.since(t, r.machines[m.name]); got.Boots != wanted || got.Logins > 0 {
			t.Errorf("%s: %+v, want %d boots", m.name, got, wanted)
		}
	}
}

// hasBooted reports whether the agent of a node reports the requested boot, and the node is given back.
func (f *fleet) hasBooted(t *testing.T, m *machine) bool {
	t.Helper()
	n := f.node(t, m.name)
	report, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	return err == nil && report.Rebooted == bundle.Of([]byte(n.Annotations[published.RebootAnnotation])) && observer.IsCurrent(*n) && !n.Spec.Unschedulable &&
		n.Annotations[published.CordonAnnotation] == ""
}
