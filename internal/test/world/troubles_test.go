package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/layers"
	"wmco/controller/status"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/faults"
)

// denyEvictions has a PodDisruptionBudget that allows nothing, until calm.
func (w *world) denyEvictions(t *testing.T) {
	w.put(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: default, name: none}, spec: {maxUnavailable: 0, selector: {}},
  status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}}`)
}

// calm ends what storms leave: hosts are on and work, nodes are not paused, no budget denies evictions, and what has failed is tried again.
func (w *world) calm(t *testing.T) {
	t.Helper()
	w.try(t, "the end of a budget", func() error {
		return client.IgnoreNotFound(w.Delete(w.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "none"}}))
	})
	w.registries.setTrouble(troubleNone, false)
	w.powerAllOn(t)
	w.calmHosts(t)
	for _, m := range w.named(runs) {
		w.heal(t, m)
		if m.ends {
			continue
		}
		n := w.observer.Snapshot()[m.name]
		if _, paused := n.Annotations[published.PausedAnnotation]; paused {
			w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
		}
		if r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation]); r.State == published.StateRolledBack || r.State == published.StateFailed {
			w.annotate(t, m, published.RetryAnnotation)
		}
	}
}

// breakKubelets has a setting for a while with which kubelets end, of all hosts or of some.
func (w *world) breakKubelets(t *testing.T) {
	w.settings.maxPods = failsEverywhere + w.random.IntN(3)
	w.write(t)
	pause(w.ctx, 90*time.Minute)
	w.changeKubelets(t)
}

// breakSome has something not work on up to so many hosts, for a change of the inputs. All others follow that, if failureLimit allows it.
func (w *world) breakSome(most int, change func(*simulation.Script)) func(*testing.T) bool {
	return func(t *testing.T) bool {
		w.calm(t)
		w.rest(t)
		ill := w.choose(1+w.random.IntN(most), w.isOrdinary)
		if w.random.IntN(2) == 0 {
			ill = w.named(w.isOrdinary)[:len(ill)] // those that go first
		}
		for _, m := range ill {
			w.breakHost(t, m, change)
		}
		w.changeKubelets(t)
		if w.random.IntN(2) == 0 {
			w.toEach(3, w.isOrdinary, w.loseFeature)(t)
		}
		w.putMirrorSet(t, 0)
		if len(ill) <= w.settings.failureLimit {
			w.settle(t, isWell)
		} else {
			pause(w.ctx, time.Hour) // the first one does not count, the next ones stop the rollout
		}
		w.calm(t)
		return true
	}
}

// leaveInBoot has a host not come back from a boot that a person asks for. All others follow a change.
func (w *world) leaveInBoot(t *testing.T) {
	w.calm(t)
	w.rest(t)
	for _, m := range w.choose(1, w.isOrdinary) {
		m.ill = true
		m.stuck.Store(true)
		w.askForBoot(t, m)
	}
	pause(w.ctx, time.Hour)
	w.putMirrorSet(t, 0)
	w.settle(t, isWell)
	w.calm(t)
}

// restoreAnnotation writes the annotation that a node had at the last rest, as a backup does.
func (w *world) restoreAnnotation(t testing.TB, m *machine) {
	if text := w.earlier[m.name]; text != "" {
		w.tellNode(t, m, text)
	}
}

// forge permits a node everything, in an annotation without a signature.
func (w *world) forge(t testing.TB, m *machine) {
	d, err := published.DecodeDesired(w.observer.Snapshot()[m.name].Annotations[published.DesiredAnnotation])
	if err != nil {
		return // it was told of nothing
	}
	d.MaxImpact, d.Boot = bundle.ImpactReboot, bundle.Of([]byte("forged"))
	text, err := d.Encode()
	must(t, err)
	w.tellNode(t, m, text)
}

// writeNewer has a newer operator have noted something on a Node, and an input change.
func (w *world) writeNewer(t testing.TB, m *machine) {
	before := w.observer.Snapshot()[m.name].Annotations[published.RolloutAnnotation]
	w.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, published.RolloutAnnotation, `{"schema":1000}`))
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Hour)
	w.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, published.RolloutAnnotation, before))
}

// addStranger has a Node whose host the operator does not know, with an address of another node. It gets nothing.
func (w *world) addStranger(t *testing.T) {
	const name = "stranger"
	n, _ := w.example.Node(0)
	n.Name, n.Labels[corev1.LabelHostname], n.Annotations = name, name, nil
	w.try(t, "a Node", func() error { return w.Create(w.ctx, n.DeepCopy()) })
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Hour)
	w.try(t, "the Node", func() error { return w.Get(w.ctx, client.ObjectKey{Name: name}, n) })
	var readers rbacv1.RoleBinding
	w.try(t, "the readers of layers", func() error {
		return w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: layers.Access}, &readers)
	})
	if n.Annotations[published.DesiredAnnotation] != "" || slices.ContainsFunc(readers.Subjects, func(s rbacv1.Subject) bool { return strings.HasSuffix(s.Name, ":"+name) }) {
		w.observer.Violate(ruleStranger, "%v, %v", n.Annotations, readers.Subjects)
	}
	w.try(t, "the end of a Node", func() error { return w.Delete(w.ctx, n) })
}

// replaceSecret puts something else in the place of a part of a layer.
func (w *world) replaceSecret(t *testing.T) {
	var list corev1.SecretList
	w.try(t, "Secrets", func() error {
		return w.List(w.ctx, &list, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
	})
	s := list.Items[w.random.IntN(len(list.Items))]
	w.try(t, "the end of a Secret", func() error { return client.IgnoreNotFound(w.Delete(w.ctx, &s)) })
	if w.random.IntN(2) == 0 {
		s.ResourceVersion, s.UID, s.Data = "", "", map[string][]byte{published.SecretKey: []byte("something else")}
		if w.Create(w.ctx, &s) == nil { // the operator may have been faster
			w.foreign[s.UID] = true
		}
	}
}

func (w *world) tellNode(t testing.TB, m *machine, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{published.DesiredAnnotation: text}}})
	must(t, err)
	w.observer.NoteForeign(text)
	w.edit(t, m.name, string(patch))
}

// killAtWrites has nodes change, and kills one operator after the other after some writes.
func (w *world) killAtWrites(t *testing.T) {
	w.putMirrorSet(t, 0)
	w.changeKubelets(t)
	w.toEach(2, w.isOrdinary, w.loseFeature)(t)
	for range 4 {
		w.killAtWrite()
	}
}

// killAtWrite kills the operator after some writes.
func (w *world) killAtWrite() {
	w.operator.left.Store(1 + w.random.Int64N(6)) //nolint:mnd // a few
	select {
	case <-w.operator.died:
	case <-time.After(15 * time.Minute):
	}
	w.operator.kill()
	w.live()
}

// leaveAlone has no operator for hours, from the middle of a change.
func (w *world) leaveAlone(t *testing.T) {
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(2*time.Minute))))
	w.operator.kill()
	pause(w.ctx, time.Duration(w.random.Int64N(int64(operatorOff))))
	w.live()
}

// changeLeader has another operator wait for the Lease, of the same release or the other one, and kills the one that leads in the middle of a change.
func (w *world) changeLeader(t *testing.T) {
	w.lives++
	w.released = w.random.IntN(len(w.releases))
	next := w.startOperator(true, 0)
	pause(w.ctx, time.Minute)
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Minute))))
	w.operator.kill()
	w.operator = next
}

// takeLease has another process take the Lease in the middle of a change, for two minutes or for years, and never renew it.
func (w *world) takeLease(t *testing.T) {
	w.putMirrorSet(t, 0)
	w.changeKubelets(t)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Minute))))
	now := metav1.NowMicro()
	seconds := []int32{int32(leaseDuration.Seconds()), 1_000_000_000}[w.random.IntN(2)]
	w.try(t, "the Lease", func() error {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: status.OperatorName}}
		before := l.DeepCopy()
		l.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
		return client.IgnoreNotFound(w.Patch(w.ctx, l, client.MergeFrom(before)))
	})
	pause(w.ctx, 5*time.Minute)
}

// leadTwice has two operators work that know of no Lease, for a while. One of them learns of everything late.
func (w *world) leadTwice(t *testing.T) {
	w.operator.stop()
	w.settings.operators = 2
	w.write(t)
	w.lives += 2
	one, two := w.startOperator(false, 0), w.startOperator(false, 700*time.Millisecond)
	pause(w.ctx, time.Minute)
	w.putMirrorSet(t, 0)
	w.toEach(4, w.isOrdinary, w.loseFeature)(t)
	pause(w.ctx, time.Duration(1+w.random.IntN(20))*time.Minute)
	one.kill()
	two.kill()
	w.live()
}

func (w *world) powerAllOn(t *testing.T) bool {
	off := w.named(func(m *machine) bool { return !runs(m) })
	for _, m := range off {
		w.powerOn(t, m)
	}
	return len(off) > 0
}

// longestOutage is how long the API server is away at most.
const longestOutage = 10 * time.Minute

func (w *world) stopAPIServer(*testing.T) {
	w.observer.Disturb()
	w.operator.disturbed.Store(true)
	w.server.SetDown(true)
	pause(w.ctx, time.Second+time.Duration(w.random.Int64N(int64(longestOutage-time.Second))))
	w.server.SetDown(false)
	w.observer.Disturb()
}

// restoreEtcd saves etcd in the middle of a change, and brings that back after another one.
func (w *world) restoreEtcd(t *testing.T) {
	w.calm(t)
	w.rest(t) // what is removed from a host does not come back with its Node
	w.toEach(2, w.isOrdinary, w.loseFeature)(t)
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(5*time.Minute))))
	saved, settings := w.server.Etcd.Save(), w.settings
	w.putMirrorSet(t, 1)
	w.changeKubelets(t)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Hour))))
	for range 2 {
		w.operator.stop()
		w.live()
		pause(w.ctx, 10*time.Minute)
	}
	w.observer.Disturb()
	w.server.SetDown(true)
	w.server.Etcd.Restore(saved)
	w.trail.mu.Lock()
	w.trail.restored = time.Now()
	w.trail.mu.Unlock()
	w.settings = settings
	w.server.SetDown(false)
	w.observer.Disturb()
	for _, m := range w.named(isOn) {
		must(t, w.setReady(m.name, corev1.ConditionTrue)) // kubelets say so again
	}
	w.operator.kill()
	w.live()
}

func (w *world) badDay(fault faults.Fault) {
	w.observer.Disturb()
	w.operator.disturbed.Store(true)
	w.operator.network.Set(fault)
	lasts := time.Duration(2+w.random.IntN(60)) * time.Second
	if fault == faults.Denied { // a policy stays until a person sees what it does
		lasts *= 60
	}
	pause(w.ctx, lasts)
	w.operator.network.Set(faults.None)
	w.observer.Disturb()
}

// days has hosts off for one to five days, in which inputs and keys change. Then they come back, and follow.
func (w *world) days(t *testing.T) {
	off := w.choose(1+w.random.IntN(3), w.isOrdinary)
	for _, m := range off {
		w.powerOff(t, m)
	}
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Hour)
	w.checkLayers(t)
	pause(w.ctx, 20*time.Hour)
	w.operator.stop()
	w.live()
	pause(w.ctx, 7*time.Hour)
	w.checkLayers(t)
	pause(w.ctx, time.Duration(w.random.IntN(24))*time.Hour)
	w.changeMirrors(t)
	w.changeSigningKey(t)
	w.changeProxy(t)
	pause(w.ctx, time.Hour)
	for _, m := range off {
		w.powerOn(t, m)
	}
	w.rest(t)
}

// TestAHostThatFailsForItsOwnFaultHoldsUpNoOther: the first node of a change has a full disk, denies writes or is off. All others follow within an hour.
func TestAHostThatFailsForItsOwnFaultHoldsUpNoOther(t *testing.T) {
	inWorld(t, options{nodes: 4, seed: 1, patience: time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		full := func(s *simulation.Script) { s.Full = []string{`C:`} }
		denies := func(s *simulation.Script) { s.Denied = []string{`C:\k`} }
		for _, change := range []func(*simulation.Script){full, denies} {
			m := w.named(w.isOrdinary)[0]
			w.breakHost(t, m, change)
			w.changeKubelets(t)
			w.settle(t, isWell)
			w.calm(t)
			w.rest(t)
		}
		for _, m := range w.named(w.isOrdinary)[:2] {
			w.powerOff(t, m)
		}
		w.changeKubelets(t)
		w.settle(t, isWell)
		w.calm(t)
		w.rest(t)
		w.print(t)
	})
}
