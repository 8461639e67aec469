package fleettest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
	"wmco/internal/test/testenv"
)

// storm is a fleet whose rollouts are disturbed, and who observes it.
type storm struct {
	*fleet
	o *observer.Observer
	// kills is how many operators are killed in one rollout; each is killed at its first write where that is every one.
	kills int
}

// fleetVariable is the number of machines.
const fleetVariable = "WMCO_FLEET"

// everyWrite is a number of kills that no rollout reaches.
const everyWrite = 100_000

// TestStorm disturbs rollouts in every way that issue 19 names, while an observer that asks no operator watches every event of Nodes and pods.
// It is one test, because its parts need the same nodes. WMCO_FLEET is their number, WMCO_ROLLOUT_KILLS that of operators that are killed in
// each rollout, each after some writes; 0 is one operator for every single write.
func TestStorm(t *testing.T) {
	begun := time.Now()
	s := &storm{fleet: newMemoryFleet(t, number(t, fleetVariable, 6)), kills: number(t, "WMCO_ROLLOUT_KILLS", 3)}
	if s.kills == 0 {
		s.kills = everyWrite
	}
	server.Load(t, filepath.Join("..", "..", "..", "deploy", "crd"))
	s.o = s.watch(t)
	s.live(t, 0, 0)
	s.rests(t)
	t.Logf("%d nodes, %.1f s until they have the wanted bundle", len(s.machines), time.Since(begun).Seconds())
	s.administrate(t)
	for _, c := range []struct {
		name  string
		check func(*testing.T)
	}{
		{"what a mirror set and a proxy cost", s.checkCosts},
		{"every kind of input changes while another change is under way", s.checkInputs},
		{"the operator is killed while services restart", s.checkKilledRestarts},
		{"a bad setting stops at the canary", s.checkBadSetting},
		{"the operator is killed while nodes boot", s.checkKilledBoots},
		{"two operators believe that they lead", s.checkTwoOperators},
		{"the API server has bad days", s.checkFaults},
		{"a host that does not come back, and a drain that is not allowed", s.checkStuck},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Now()
			c.check(t)
			s.judge(t)
			t.Logf("%d nodes, %.1f s", len(s.machines), time.Since(begun).Seconds())
		})
	}
}

// judge fails the test for every rule that was broken.
func (s *storm) judge(t *testing.T) {
	t.Helper()
	s.o.CheckEvictions()
	s.o.CheckLeft()
	for _, v := range s.o.Violations() {
		t.Errorf("%s (seen %d times): %s", v.Rule, v.Count, v.Text)
	}
	s.o.ForgetViolations()
}

// administrate does what an administrator does: it is there in the end, and was at every moment.
func (s *storm) administrate(t *testing.T) {
	cordoned, annotated := s.machines[1].name, s.machines[2].name
	s.edit(t, cordoned, `{"spec":{"unschedulable":true}}`)
	s.edit(t, annotated, `{"metadata":{"annotations":{"`+windowsnode.ScaleDownAnnotation+`":"true","example.com/note":"kept"}}}`)
	eventually(t, "what the administrator did, as seen by the observer", func() bool {
		return len(s.o.NodesThat(func(n corev1.Node) bool { return n.Spec.Unschedulable || n.Annotations["example.com/note"] != "" })) == 2
	})
	s.o.Protect(cordoned, func(n corev1.Node) string {
		if !n.Spec.Unschedulable || observer.IsCordonedByUs(n) {
			return "the administrator's cordon is gone"
		}
		return ""
	})
	s.o.Protect(annotated, func(n corev1.Node) string {
		if n.Annotations[windowsnode.ScaleDownAnnotation] != "true" || n.Annotations["example.com/note"] != "kept" {
			return "the administrator's annotations are gone"
		}
		return ""
	})
}

// rests waits until every node is at rest, and the operator has nothing to do.
func (s *storm) rests(t *testing.T) {
	t.Helper()
	s.await(t, s.o, "nodes at rest", func() bool { return s.o.Count() == len(s.machines) && s.o.AllNodesAre(observer.IsAtRest) })
	s.rest(t)
}

// configure changes the settings of rollouts, which the operator knows when it returns.
func (s *storm) configure(t *testing.T, text string, r observer.Rules) {
	t.Helper()
	seen := renders(t)
	s.settings(t, text)
	eventually(t, "a render by the operator", func() bool { return renders(t) > seen })
	s.o.KeepRules(r)
}

// renew ends all operators and starts one.
func (s *storm) renew(t *testing.T) {
	t.Helper()
	s.stop()
	s.live(t, 0, 0)
}

// writes returns after how many writes each operator is killed.
func (s *storm) writes(life int) int {
	switch {
	case s.kills == everyWrite:
		return 1
	case life >= s.kills:
		return 0
	}
	return 1 + 2*life
}

// mark changes a mirror set, the last of several changes: what has the mark has what was changed before.
func (s *storm) mark(t *testing.T, host string) (has func() bool) {
	t.Helper()
	s.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: mark},
  spec: {imageDigestMirrors: [{source: quay.io/mark, mirrors: ["`+host+`:5000/mark"]}]}}`)
	return func() bool {
		return !slices.ContainsFunc(s.machines, func(m *machine) bool { return !strings.Contains(m.Text(registries+`quay.io\hosts.toml`), host) }) && s.o.AllNodesAre(observer.IsAtRest)
	}
}

// changedAgain is the name of the change that another one takes back.
const changedAgain = "MachineConfig with another flag of kubelets"

// otherInputs are changes of inputs that the tests of single changes do not have.
func otherInputs() []change {
	config := gather.OperatorNamespace + `, name: windows-machine-config}, data: {config.yaml: "{rollout: {settle: 0s, maxParallel: 3}, kubelet: {maxPods: 100}, `
	return []change{
		{name: "settings of containerd", apply: func(t *testing.T, f *fleet) {
			f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+config+`containerd: {logLevel: debug}}"}}`)
		}, see: hasText(`C:\k\containerd\containerd_conf.toml`, `level = "debug"`)},
		{name: "settings of logs", apply: func(t *testing.T, f *fleet) {
			f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+config+`containerd: {logLevel: debug}, logs: {size: 50Mi}}"}}`)
		}},
		{name: "MachineConfig as before", apply: func(t *testing.T, f *fleet) {
			f.renderConfig(t, "rendered-worker-as-before", "--cloud-provider=external", "--cloud-provider=")
		}},
	}
}

// checkInputs: each change begins when the first node was told of the one before. Nothing needs a drain, and every node has everything in the
// end.
func (s *storm) checkInputs(t *testing.T) {
	s.configure(t, `{rollout: {settle: 0s, maxParallel: 3}}`, observer.Rules{Unavailable: intstr.FromInt32(1), Parallel: 3})
	boots := s.boots()
	var seen []change
	for _, c := range slices.Concat(mirrorChanges(), proxyChanges(), kubeletChanges(), otherInputs()) {
		if c.hidden || c.name == "settings" {
			continue
		}
		before := s.bundles(t)
		c.apply(t, s.fleet)
		s.await(t, s.o, "a node that is told of "+c.name, func() bool { _, _, told := s.o.MostSinceBegin(before); return len(told) > 0 })
		s.o.BeginCounts()
		seen = append(seen, c)
	}
	s.await(t, s.o, "the last change on all nodes", s.mark(t, "inputs.example.com"))
	s.rests(t)
	for _, c := range seen {
		for _, m := range s.machines {
			if c.see != nil && c.name != changedAgain {
				c.see(t, s.fleet, m)
			}
		}
	}
	for _, m := range s.machines {
		must(t, m.Look(t.Context(), func(x *simulation.State) {
			if slices.Contains(x.Services["kubelet"].Argv, "--cloud-provider=external") {
				t.Errorf("%s has a flag of the kubelet that was taken back", m.name)
			}
		}))
	}
	if now := s.boots(); !slices.Equal(boots, now) {
		t.Errorf("%v boots, and %v before", now, boots)
	}
	if _, away, _ := s.o.MostSinceBegin(nil); away > 0 {
		t.Errorf("%d nodes were cordoned at once", away)
	}
}

// boots are how often each machine has booted.
func (s *storm) boots() []int {
	var list []int
	for _, m := range s.machines {
		list = append(list, m.Boots())
	}
	return list
}

// checkKilledRestarts: a proxy, then a mirror set, and the next operator goes on where the one before was killed.
func (s *storm) checkKilledRestarts(t *testing.T) {
	s.o.KeepRules(observer.Rules{Unavailable: intstr.FromInt32(1), Parallel: 3})
	s.stop()
	starts := map[string]int{}
	for _, m := range s.machines {
		starts[m.name] = m.Starts()["kubelet"]
	}
	s.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://storm.example.com:3128", noProxy: ".cluster.local,.svc"}}`)
	kills := s.fleet.storm(t, s.o, s.writes, s.mark(t, "killed.example.com"))
	t.Logf("%d operators were killed", kills)
	s.renew(t)
	s.rests(t)
	for _, m := range s.machines {
		isRunWith("HTTP_PROXY=http://storm.example.com:3128")(t, s.fleet, m)
		if again := m.Starts()["kubelet"] - starts[m.name]; again != 1 {
			t.Errorf("%s: the kubelet was started %d times", m.name, again)
		}
	}
}

// deploy runs pods that the scheduler puts on other nodes when they are evicted, until the end of the test.
func (s *storm) deploy(t *testing.T, pods int) {
	t.Helper()
	labels := map[string]string{"app": "storm"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "storm"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(pods)), Selector: &metav1.LabelSelector{MatchLabels: labels}, //nolint:gosec // a few
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}, Tolerations: []corev1.Toleration{{Key: "os", Operator: corev1.TolerationOpExists}},
			TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "web", Image: "mcr.microsoft.com/windows/nanoserver:ltsc2022"}},
		}},
	}}
	must(t, s.Create(t.Context(), d))
	t.Cleanup(func() {
		must(t, s.Delete(context.Background(), d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		must(t, testenv.Eventually(context.Background(), "the end of the Deployment and its pods", func() bool {
			return apierrors.IsNotFound(s.Get(context.Background(), client.ObjectKeyFromObject(d), d))
		}))
	})
	s.deployed(t, d)
}

func (s *storm) deployed(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	eventually(t, "pods that are Ready", func() bool {
		must(t, s.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		return d.Status.ReadyReplicas == *d.Spec.Replicas
	})
}

// some are the machines that boot: four of a small fleet, all of a large one.
func (s *storm) some() []*machine {
	const small = 6
	if len(s.machines) > small {
		return slices.Clone(s.machines)
	}
	return slices.Clone(s.machines[:4])
}

// bootings are machines that have to boot, with how often they have booted before.
type bootings struct {
	*storm
	before map[*machine]int
}

// boot has machines boot.
func (s *storm) boot(t *testing.T, machines ...*machine) bootings {
	t.Helper()
	b := bootings{s, map[*machine]int{}}
	for _, m := range machines {
		b.before[m] = m.Boots()
	}
	loseFeature(t, machines...)
	return b
}

// done reports whether all have booted, and all nodes are at rest.
func (b bootings) done() bool {
	for m, before := range b.before {
		if m.Boots() == before {
			return false
		}
	}
	return b.o.AllNodesAre(observer.IsAtRest)
}

// check checks that nothing was done twice.
func (b bootings) check(t *testing.T) {
	t.Helper()
	for m, before := range b.before {
		if n := m.Boots() - before; n != 1 {
			t.Errorf("%s has booted %d times", m.name, n)
		}
	}
}

// checkKilledBoots: every node is drained and boots, three at a time with the one that an administrator has cordoned.
func (s *storm) checkKilledBoots(t *testing.T) {
	s.configure(t, `{rollout: {settle: 0s, maxUnavailable: 3}}`, observer.Rules{Unavailable: intstr.FromInt32(3), Parallel: 20})
	s.deploy(t, len(s.machines))
	s.stop()
	b := s.boot(t, s.some()...)
	kills := s.fleet.storm(t, s.o, s.writes, b.done)
	t.Logf("%d operators were killed", kills)
	s.renew(t)
	s.rests(t)
	b.check(t)
}

// checkTwoOperators: one of them learns of everything late.
func (s *storm) checkTwoOperators(t *testing.T) {
	s.configure(t, `{rollout: {settle: 0s, maxUnavailable: 34%}}`, observer.Rules{Unavailable: intstr.FromString("34%"), Parallel: 20, Operators: 2})
	s.deploy(t, 2)
	s.live(t, 0, 700*time.Millisecond)
	t.Cleanup(func() { s.renew(t) })
	b := s.boot(t, s.some()...)
	s.await(t, s.o, "boots", b.done)
	s.await(t, s.o, "another change on all nodes", s.mark(t, "two.example.com"))
	b.check(t)
}

// turn changes what the operator has noted on a Node, as if time had passed.
func (s *storm) turn(t *testing.T, node string, change func(*windowsnode.RolloutState)) {
	t.Helper()
	state, err := windowsnode.DecodeRolloutState(s.node(t, node).Annotations[published.RolloutAnnotation])
	must(t, err)
	change(&state)
	text, err := state.Encode()
	must(t, err)
	quoted, err := json.Marshal(text)
	must(t, err)
	s.edit(t, node, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, published.RolloutAnnotation, quoted))
}

// rolledOut is the operator's condition about the rollout.
func (s *storm) rolledOut(t *testing.T) metav1.Condition {
	t.Helper()
	u := object(status.Group+"/"+status.Version, status.Kind, gather.OperatorNamespace, status.Name)
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	data, err := u.MarshalJSON()
	must(t, err)
	decoded, err := status.Decode(data)
	must(t, err)
	i := slices.IndexFunc(decoded.Conditions, func(c metav1.Condition) bool { return c.Type == status.RolledOut })
	if i < 0 {
		return metav1.Condition{}
	}
	return decoded.Conditions[i]
}

// eventuallySaid waits until the operator's status has something about the rollout.
func (s *storm) eventuallySaid(t *testing.T, what string, is func(metav1.Condition) bool) {
	t.Helper()
	var last metav1.Condition
	if err := testenv.Eventually(t.Context(), what+" in the status", func() bool { last = s.rolledOut(t); return is(last) }); err != nil {
		t.Fatalf("%v; the condition is %s: %s", err, last.Reason, last.Message)
	}
}

// anHour is longer than a turn may take, in seconds: as if an operator before this one had seen it pass.
const anHour = 3600

// checkStuck: of the nodes that have to boot, one is away for good, and one has a pod that may not be evicted. Both keep their places, with
// the one that an administrator has cordoned, and all others pass. When their time is over, the lost one stops the rollout, and the other
// one is given back. In the end both follow.
func (s *storm) checkStuck(t *testing.T) {
	s.configure(t, `{rollout: {settle: 0s, maxUnavailable: 4, nodeTimeout: 30m}}`, observer.Rules{Unavailable: intstr.FromInt32(4), Parallel: 20})
	lost, guarded := s.machines[0], s.machines[3]
	labels := map[string]string{"app": "guarded"}
	s.runPod(t, "web-guarded", guarded.name, labels)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "never"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	must(t, s.Create(t.Context(), budget))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(s.Delete(context.Background(), budget))) })
	lost.StickOff(true)
	s.o.Excuse(lost.name, true)
	// The last one keeps its feature, and proves what the others have: a lost canary would keep them all.
	whole := s.machines[len(s.machines)-1]
	others := slices.DeleteFunc(s.some(), func(m *machine) bool { return m == lost || m == guarded || m == whole })
	b := s.boot(t, append(others, lost, guarded)...)
	s.await(t, s.o, "boots of all others", func() bool {
		for _, m := range others {
			if m.Boots() == b.before[m] {
				return false
			}
		}
		return !lost.IsOn() && len(s.o.NodesThat(observer.IsAtRest)) == len(s.machines)-2
	})
	const budgetName = "PodDisruptionBudget never"
	s.eventuallySaid(t, "the name of what blocks the drain", func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, guarded.name) && strings.Contains(c.Message, budgetName) && strings.Contains(c.Message, "default/web-guarded")
	})
	if notes := s.notes(t, drains.EventDrainBlocked, guarded.name); len(notes) == 0 || !strings.Contains(notes[0], budgetName) {
		t.Errorf("the events about %s are %q", guarded.name, notes)
	}

	// The time of both is over.
	s.turn(t, guarded.name, func(x *windowsnode.RolloutState) { x.Elapsed.Taken = anHour })
	s.await(t, s.o, "a node that is given back", func() bool {
		return slices.Contains(s.o.NodesThat(func(n corev1.Node) bool {
			return !observer.IsCordonedByUs(n) && !n.Spec.Unschedulable && !observer.IsHeld(n)
		}), guarded.name)
	})
	s.turn(t, lost.name, func(x *windowsnode.RolloutState) { x.Elapsed.Permitted = anHour })
	s.eventuallySaid(t, "a rollout that has stopped because of the lost host", func(c metav1.Condition) bool {
		return c.Reason == status.ReasonStopped && strings.Contains(c.Message, lost.name)
	})

	// A user finds both.
	must(t, s.Delete(t.Context(), budget))
	lost.StickOff(false)
	must(t, lost.PowerOn())
	s.await(t, s.o, "the lost host", func() bool { return slices.Contains(s.o.NodesThat(observer.IsAtRest), lost.name) })
	s.o.Excuse(lost.name, false)
	s.turn(t, guarded.name, func(x *windowsnode.RolloutState) { x.Postponed = time.Time{} })
	s.await(t, s.o, "all nodes", b.done)
	s.rests(t)
}

const limits = `rollout: {settle: 0s, maxParallel: 2, maxUnavailable: 1}`

// checkBadSetting: the kubelet refuses a setting that the operator does not know to be wrong. The canary rolls back, the others never
// learn of it, and a correct setting reaches all, two at a time.
func (s *storm) checkBadSetting(t *testing.T) {
	s.o.KeepRules(observer.Rules{Unavailable: intstr.FromInt32(1), Parallel: 2})
	before, r := s.bundles(t), s.read(t)
	s.settings(t, `{`+limits+`, kubelet: {maxPods: 100, cpuManagerPolicy: static, kubeReserved: {cpu: '64'}, featureGates: {WindowsCPUAndMemoryAffinity: true}}}`)
	var note string
	// The kubelet may take two minutes to become healthy; those of these machines are 12 s.
	eventually(t, "a rollout that has stopped", func() bool {
		notes := s.fleetNotes(t, steps.EventRolloutStopped)
		if len(notes) > 0 {
			note = notes[0]
		}
		return len(notes) > 0
	})
	for _, text := range []string{"stopped: canary ", "rolled back", `file C:\k\kubelet.conf`, "ConfigMap/" + gather.OperatorNamespace + "/windows-machine-config", "fix: "} {
		if !strings.Contains(note, text) {
			t.Errorf("the event %q lacks %q", note, text)
		}
	}
	s.rendered(t)
	_, _, told := s.o.MostSinceBegin(before)
	if len(told) != 1 {
		t.Fatalf("%q were told of the setting", told)
	}
	for _, m := range s.machines {
		if got := m.since(t, r.machines[m.name]); m.name != told[0] && len(got.Starts)+len(got.Files)+got.Logins > 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
	if n := s.node(t, told[0]); n.Spec.Unschedulable || n.Labels[corev1.LabelOSStable] == "" {
		t.Errorf("%s is cordoned", told[0])
	}
	s.o.BeginCounts()
	s.settings(t, `{`+limits+`, kubelet: {maxPods: 90}}`)
	s.followed(t, r)
	s.rest(t)
	restarting, away, told := s.o.MostSinceBegin(before)
	if len(told) != len(s.machines) || restarting > 2 || away > 0 {
		t.Errorf("%q were told, %d restarted at once, %d were cordoned", told, restarting, away)
	}
	for _, m := range s.machines {
		if got := m.since(t, r.machines[m.name]); got.Boots+got.Logins > 0 || got.Starts["kubelet"] == 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
	if len(s.fleetNotes(t, steps.EventRolloutResumed))+len(s.fleetNotes(t, steps.EventRolloutDone)) == 0 {
		t.Error("no event shows that the rollout went on")
	}
}
