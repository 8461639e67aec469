package world

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/keys/signing"
	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
)

// firstSecret is the first password of the proxy. Later ones differ in their number.
const firstSecret = "world-password-0"

// settings are those of the operator that the storm changes.
type settings struct{ maxUnavailable, maxParallel, canaries, maxPods int }

func (x settings) String() string {
	return fmt.Sprintf("{rollout: {settle: 0s, canaries: %d, maxUnavailable: %d, maxParallel: %d, failureLimit: 100}, kubelet: {maxPods: %d}}", x.canaries, x.maxUnavailable, x.maxParallel, x.maxPods)
}

// rules are what these settings have an observer check.
func (x settings) rules() observer.Rules {
	return observer.Rules{Unavailable: intstr.FromInt32(int32(x.maxUnavailable))} //nolint:gosec // some nodes
}

// write writes the settings.
func (w *world) write(t testing.TB) {
	t.Helper()
	w.observer.AllowRules(w.settings.rules())
	w.put(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: windows-machine-config}, data: {config.yaml: %q}}", gather.OperatorNamespace, w.settings))
}

// put applies an object, with its status, as oc apply --server-side does.
func (w *world) put(t testing.TB, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	owner := client.FieldOwner("person")
	w.try(t, "an object", func() error {
		return w.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership)
	})
	if u.Object["status"] != nil {
		w.try(t, "the status of an object", func() error {
			return w.Status().Apply(w.ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership)
		})
	}
}

// mirrorSets is how many mirror sets there are at most.
const mirrorSets = 4

func mirrorSet(i int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("config.openshift.io/v1")
	u.SetKind("ImageDigestMirrorSet")
	u.SetName(fmt.Sprintf("world-%d", i))
	return u
}

// act is something that a storm does. Weight is how often, beside the others; each is done once before any is done again.
type act struct {
	name   string
	weight int
	fault  bool
	// do reports whether it was possible: one that was not does not count.
	do func(*testing.T) bool
}

const actKilled = "operator killed"

// always is an act that is always possible.
func always(do func(*testing.T)) func(*testing.T) bool {
	return func(t *testing.T) bool { do(t); return true }
}

func (w *world) acts() []act {
	return []act{
		{"mirror set", 5, false, always(w.changeMirrors)},
		{"pull secret", 2, false, always(w.changePullSecret)},
		{"proxy", 3, false, always(w.changeProxy)},
		{"trusted CAs", 1, false, always(w.changeCAs)},
		{"settings of kubelets", 2, false, always(func(t *testing.T) { w.settings.maxPods = 100 + w.random.IntN(150); w.write(t) })},
		{"limits of the rollout", 3, false, always(w.changeLimits)},
		{"signing key", 1, false, always(w.changeSigningKey)},
		{"boots that Windows features need", 3, false, w.toEach(3, w.isOrdinary, w.loseFeature)},
		{"boot by annotation", 2, false, w.toEach(2, w.isOrdinary, w.askForBoot)},
		{"drift", 3, false, w.toEach(3, isOn, w.drift)},
		{"nodes added", 2, false, always(func(t *testing.T) { w.addNodes(t, 1+w.random.IntN(1+w.options.nodes/20)) })},
		{"nodes removed", 2, false, w.removeNodes},
		{"budget that allows no eviction", 2, true, always(w.denyEvictions)},
		{"pause and resume", 1, false, always(w.pauseNodes)},
		{actKilled, 4, true, always(func(*testing.T) { w.operator.kill(); w.live() })},
		{"API server away", 1, true, always(w.stopAPIServer)},
		{"bad day of the API server or the clock", 3, true, always(w.badDay)},
		{"hosts off", 3, true, w.toEach(2, w.isOrdinary, w.powerOff)},
		{"hosts on", 3, false, w.powerAllOn},
	}
}

// toEach does something to some machines for which this holds, most at most.
func (w *world) toEach(most int, is func(*machine) bool, do func(testing.TB, *machine)) func(*testing.T) bool {
	return func(t *testing.T) bool {
		list := w.choose(1+w.random.IntN(most), is)
		for _, m := range list {
			do(t, m)
		}
		return len(list) > 0
	}
}

// isOrdinary reports whether a machine is on, and its node is not cordoned.
func (w *world) isOrdinary(m *machine) bool { return isOn(m) && m.name != w.cordoned }

// choose returns some machines for which this holds.
func (w *world) choose(count int, is func(*machine) bool) []*machine {
	list := w.named(is)
	w.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(count, len(list))]
}

// deal returns the next act. All come in a random order, then all again as often as their weight says, and so on.
func (w *world) deal() act {
	if len(w.deck) == 0 {
		for _, e := range w.acts() {
			for range max(1, e.weight*min(w.dealt, 1)) {
				w.deck = append(w.deck, e)
			}
		}
		w.random.Shuffle(len(w.deck), func(i, j int) { w.deck[i], w.deck[j] = w.deck[j], w.deck[i] })
		w.dealt++
	}
	e := w.deck[0]
	w.deck = w.deck[1:]
	return e
}

// storm lets things happen, one after the other, with a pause between them: of seconds, minutes or hours. In every third
// one no operator is killed: it has to live long too.
func (w *world) storm(t *testing.T, round int) {
	w.mayKill = round%3 != 0
	for done := 0; done < w.options.acts && !t.Failed(); {
		w.revive()
		a := w.deal()
		if a.name == actKilled && !w.mayKill {
			continue
		}
		if possible := a.do(t); possible {
			w.note(a.name, a.fault)
			done++
		}
		pause(w.ctx, []time.Duration{time.Second, 20 * time.Second, 5 * time.Minute, time.Hour}[w.random.IntN(4)]+time.Duration(w.random.Int64N(int64(time.Minute)))) //nolint:mnd // of the four
	}
}

// note counts what happened, and tells it.
func (w *world) note(name string, fault bool) {
	counts := w.changes
	if fault {
		counts = w.faults
	}
	counts[name]++
	w.tell("%s", name)
}

// denyEvictions has a PodDisruptionBudget that allows nothing, until calm.
func (w *world) denyEvictions(t *testing.T) {
	w.put(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: default, name: none}, spec: {maxUnavailable: 0, selector: {}},
  status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}}`)
}

// calm ends what storms leave: hosts are on, nodes are not paused, and no budget denies evictions.
func (w *world) calm(t *testing.T) {
	t.Helper()
	w.try(t, "the end of a budget", func() error {
		return client.IgnoreNotFound(w.Delete(w.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "none"}}))
	})
	w.powerAllOn(t)
	for _, m := range w.named(isOn) {
		if _, paused := w.observer.Snapshot()[m.name].Annotations[published.PausedAnnotation]; paused {
			w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
		}
	}
}

// changeMirrors never deletes the first one: the deletion of all mirror sets waits until a person confirms it.
func (w *world) changeMirrors(t *testing.T) {
	i := w.random.IntN(mirrorSets)
	if i > 0 && w.random.IntN(4) == 0 {
		w.try(t, "a mirror set", func() error { return client.IgnoreNotFound(w.Delete(w.ctx, mirrorSet(i))) })
		return
	}
	w.putMirrorSet(t, i)
}

func (w *world) putMirrorSet(t testing.TB, i int) {
	t.Helper()
	w.put(t, fmt.Sprintf(`{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: world-%d},
  spec: {imageDigestMirrors: [{source: registry-%d.example.com, mirrors: ["mirror-%d.example.com:5000"]}]}}`, i, i, w.random.IntN(1_000_000)))
}

// password returns one that was never used.
func (w *world) password() string {
	w.passwords++
	text := fmt.Sprintf("world-password-%d", w.passwords)
	w.observer.HideSecrets(text, base64.StdEncoding.EncodeToString([]byte("world-user:"+text)))
	return text
}

func (w *world) changePullSecret(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("world-user:" + w.password()))
	w.put(t, `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {namespace: openshift-config, name: pull-secret},
  stringData: {.dockerconfigjson: '{"auths":{"registry-0.example.com":{"auth":"`+auth+`"},"registry-1.example.com":{"auth":"`+auth+`"}}}'}}`)
}

func (w *world) changeProxy(t *testing.T) {
	w.setProxy(t, w.password())
}

func (w *world) setProxy(t testing.TB, password string) {
	t.Helper()
	w.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://world-user:`+password+`@proxy.example.com:3128", noProxy: ".cluster.local,.svc"}}`)
}

// changeCAs gives the cluster other trusted CAs.
func (w *world) changeCAs(t *testing.T) {
	w.putCAs(t, func() bool { return w.random.IntN(2) == 0 })
}

// putCAs gives the cluster trusted CAs, as the network operator does, which fills the ConfigMap: where there is a proxy and none, no host joins.
func (w *world) putCAs(t testing.TB, isFirstAlone func() bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "golden", "clusters", "traits", "trusted-ca", "trusted-ca.yaml"))
	must(t, err)
	first, _, _ := strings.Cut(string(text), "\n---\n")
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(first), &u.Object))
	for _, field := range []string{"creationTimestamp", "generation", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	must(t, err)
	for key, pem := range data {
		if isFirstAlone() {
			const end = "-----END CERTIFICATE-----\n"
			at := strings.Index(pem, end)
			data[key] = pem[:at+len(end)] // the first of them
		}
	}
	must(t, unstructured.SetNestedStringMap(u.Object, data, "data"))
	out, err := yaml.Marshal(u.Object)
	must(t, err)
	w.put(t, string(out))
}

func (w *world) changeLimits(t *testing.T) {
	w.settings.maxUnavailable = []int{2, 3, 4, max(4, w.options.nodes/20)}[w.random.IntN(4)]
	w.settings.maxParallel = 2 + w.random.IntN(30)
	w.settings.canaries = 1 + w.random.IntN(2)
	w.write(t)
}

func (w *world) changeSigningKey(t *testing.T) {
	w.try(t, "the Secret with the signing keys", func() error {
		return w.Patch(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: signing.SecretName}},
			mergePatch(`{"metadata":{"annotations":{"`+signing.AddAnnotation+`":"world"}}}`))
	})
}

func (w *world) askForBoot(t testing.TB, m *machine) {
	t.Helper()
	w.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, published.RebootAnnotation, w.random.IntN(1_000_000)))
}

func (w *world) removeNodes(t *testing.T) bool {
	if len(w.machines) <= w.options.nodes/2 {
		return false
	}
	return w.toEach(1+w.options.nodes/20, func(m *machine) bool { return m.name != w.cordoned }, w.remove)(t)
}

func (w *world) pauseNodes(t *testing.T) {
	some := w.choose(2, isOn)
	for _, m := range some {
		w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":"true"}}}`)
	}
	pause(w.ctx, 20*time.Minute)
	for _, m := range some {
		w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
	}
}

func (w *world) powerAllOn(t *testing.T) bool {
	off := w.named(func(m *machine) bool { return !isOn(m) })
	for _, m := range off {
		w.powerOn(t, m)
	}
	return len(off) > 0
}

// longestOutage is how long the API server is away at most.
const longestOutage = 10 * time.Minute

func (w *world) stopAPIServer(*testing.T) {
	w.observer.Disturb()
	w.server.SetDown(true)
	pause(w.ctx, time.Second+time.Duration(w.random.Int64N(int64(longestOutage-time.Second))))
	w.server.SetDown(false)
	w.observer.Disturb()
}

func (w *world) badDay(*testing.T) {
	if len(w.badDays) == 0 {
		w.badDays = faults.All()
		w.random.Shuffle(len(w.badDays), func(i, j int) { w.badDays[i], w.badDays[j] = w.badDays[j], w.badDays[i] })
	}
	fault := w.badDays[0]
	w.badDays = w.badDays[1:]
	w.note(badDayOf(fault), true)
	w.observer.Disturb()
	w.operator.network.Set(fault)
	pause(w.ctx, time.Duration(2+w.random.IntN(60))*time.Second)
	w.operator.network.Set(faults.None)
	w.observer.Disturb()
}

// badDayOf is how a fault is counted.
func badDayOf(f faults.Fault) string { return "(" + string(f) + ")" }

const faultDaysOff = "hosts off for days"

// days has hosts off for one to five days, in which inputs and keys change. Then they come back, and follow.
func (w *world) days(t *testing.T) {
	off := w.choose(1+w.random.IntN(3), w.isOrdinary)
	for _, m := range off {
		w.powerOff(t, m)
	}
	w.note(faultDaysOff, true)
	pause(w.ctx, time.Duration(24+w.random.IntN(96))*time.Hour)
	for _, a := range []act{{"mirror set", 0, false, always(w.changeMirrors)}, {"signing key", 0, false, always(w.changeSigningKey)}, {"proxy", 0, false, always(w.changeProxy)}} {
		a.do(t)
		w.note(a.name, a.fault)
	}
	pause(w.ctx, time.Hour)
	for _, m := range off {
		w.powerOn(t, m)
	}
	w.rest(t)
}
