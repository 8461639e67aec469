package soak

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
const firstSecret = "soak-password-0"

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
func (s *soak) write(t testing.TB) {
	t.Helper()
	s.observer.AllowRules(s.settings.rules())
	s.put(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: windows-machine-config}, data: {config.yaml: %q}}", gather.OperatorNamespace, s.settings))
}

// put applies an object, with its status, as oc apply --server-side does.
func (s *soak) put(t testing.TB, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	owner := client.FieldOwner("person")
	s.try(t, "an object", func() error {
		return s.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership)
	})
	if u.Object["status"] != nil {
		s.try(t, "the status of an object", func() error {
			return s.Status().Apply(s.ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership)
		})
	}
}

// mirrorSets is how many mirror sets there are at most.
const mirrorSets = 4

// written are the objects that storms may have made, and that the example cluster has not.
func (s *soak) written() []client.Object {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: name}
	}
	list := []client.Object{
		&corev1.ConfigMap{ObjectMeta: named("windows-machine-config")},
	}
	for i := range mirrorSets {
		list = append(list, mirrorSet(i))
	}
	return list
}

func mirrorSet(i int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("config.openshift.io/v1")
	u.SetKind("ImageDigestMirrorSet")
	u.SetName(fmt.Sprintf("soak-%d", i))
	return u
}

// event is something that a storm does. Weight is how often, beside the others; each is done once before any is done again.
type event struct {
	name   string
	weight int
	fault  bool
	// do reports whether it was possible: one that was not does not count.
	do func(*testing.T) bool
}

const eventKilled = "operator killed"

// always is an event that is always possible.
func always(do func(*testing.T)) func(*testing.T) bool {
	return func(t *testing.T) bool { do(t); return true }
}

func (s *soak) events() []event {
	return []event{
		{"mirror set", 5, false, always(s.changeMirrors)},
		{"pull secret", 2, false, always(s.changePullSecret)},
		{"proxy", 3, false, always(s.changeProxy)},
		{"trusted CAs", 1, false, always(s.changeCAs)},
		{"settings of kubelets", 2, false, always(func(t *testing.T) { s.settings.maxPods = 100 + s.random.IntN(150); s.write(t) })},
		{"limits of the rollout", 3, false, always(s.changeLimits)},
		{"signing key", 1, false, always(s.changeSigningKey)},
		{"boots that Windows features need", 3, false, s.toEach(3, s.isOrdinary, s.loseFeature)},
		{"boot by annotation", 2, false, s.toEach(2, s.isOrdinary, s.askForBoot)},
		{"drift", 3, false, s.toEach(3, isOn, s.drift)},
		{"nodes added", 2, false, always(func(t *testing.T) { s.addNodes(t, 1+s.random.IntN(1+s.options.nodes/20)) })},
		{"nodes removed", 2, false, s.removeNodes},
		{"pause and resume", 1, false, always(s.pauseNodes)},
		{eventKilled, 4, true, always(func(t *testing.T) { s.operator.kill(); s.live(t) })},
		{"API server away", 1, true, always(s.stopAPIServer)},
		{"bad day of the API server or the clock", 3, true, always(s.badDay)},
		{"hosts off", 3, true, s.toEach(2, s.isOrdinary, s.powerOff)},
		{"hosts on", 3, false, s.powerAllOn},
	}
}

// toEach does something to some machines for which this holds, most at most.
func (s *soak) toEach(most int, is func(*machine) bool, do func(testing.TB, *machine)) func(*testing.T) bool {
	return func(t *testing.T) bool {
		list := s.choose(1+s.random.IntN(most), is)
		for _, m := range list {
			do(t, m)
		}
		return len(list) > 0
	}
}

// isOrdinary reports whether a machine is on, and its node is not cordoned.
func (s *soak) isOrdinary(m *machine) bool { return isOn(m) && m.name != s.cordoned }

// choose returns some machines for which this holds.
func (s *soak) choose(count int, is func(*machine) bool) []*machine {
	list := s.named(is)
	s.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(count, len(list))]
}

// change makes a change, and counts it if it was possible.
func (s *soak) change(t *testing.T, name string, do func(*testing.T) bool) {
	t.Helper()
	if do(t) {
		s.changes[name]++
	}
}

// deal returns the next event. All come in a random order, then all again as often as by their weight, and so on.
func (s *soak) deal() event {
	if len(s.deck) == 0 {
		for _, e := range s.events() {
			for range max(1, e.weight*min(s.dealt, 1)) {
				s.deck = append(s.deck, e)
			}
		}
		s.random.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		s.dealt++
	}
	e := s.deck[0]
	s.deck = s.deck[1:]
	return e
}

// storm lets things happen, one after the other, with a pause between them. In every third one no operator is killed: it has to live long too.
func (s *soak) storm(t *testing.T, round int, lasts time.Duration) {
	s.mayKill = round%3 != 0
	for until := time.Now().Add(lasts); time.Now().Before(until) && !t.Failed(); {
		e := s.deal()
		switch {
		case e.name == eventKilled && !s.mayKill:
			continue
		case !e.fault:
			s.change(t, e.name, e.do)
		case e.do(t):
			s.faults[e.name]++
		}
		pause(s.ctx, s.options.pause+rand.N(s.options.pause)) //nolint:gosec // no secret
	}
}

// calm ends what storms leave: hosts are on, and nodes are not paused.
func (s *soak) calm(t *testing.T) {
	t.Helper()
	s.powerAllOn(t)
	for _, m := range s.named(isOn) {
		if _, paused := s.observer.Snapshot()[m.name].Annotations[published.PausedAnnotation]; paused {
			s.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
		}
	}
}

// changeMirrors never deletes the first one: the deletion of all mirror sets waits until a person confirms it.
func (s *soak) changeMirrors(t *testing.T) {
	i := s.random.IntN(mirrorSets)
	if i > 0 && s.random.IntN(4) == 0 {
		s.try(t, "a mirror set", func() error { return client.IgnoreNotFound(s.Delete(s.ctx, mirrorSet(i))) })
		return
	}
	s.putMirrorSet(t, i)
}

func (s *soak) putMirrorSet(t testing.TB, i int) {
	t.Helper()
	s.put(t, fmt.Sprintf(`{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: soak-%d},
  spec: {imageDigestMirrors: [{source: registry-%d.example.com, mirrors: ["mirror-%d.example.com:5000"]}]}}`, i, i, s.random.IntN(1_000_000)))
}

// password returns one that was never used.
func (s *soak) password() string {
	s.passwords++
	text := fmt.Sprintf("soak-password-%d", s.passwords)
	s.observer.HideSecrets(text, base64.StdEncoding.EncodeToString([]byte("soak-user:"+text)))
	return text
}

func (s *soak) changePullSecret(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("soak-user:" + s.password()))
	s.put(t, `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {namespace: openshift-config, name: pull-secret},
  stringData: {.dockerconfigjson: '{"auths":{"registry-0.example.com":{"auth":"`+auth+`"},"registry-1.example.com":{"auth":"`+auth+`"}}}'}}`)
}

func (s *soak) changeProxy(t *testing.T) {
	s.setProxy(t, s.password())
}

func (s *soak) setProxy(t testing.TB, password string) {
	t.Helper()
	s.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://soak-user:`+password+`@proxy.example.com:3128", noProxy: ".cluster.local,.svc"}}`)
}

// changeCAs gives the cluster other trusted CAs.
func (s *soak) changeCAs(t *testing.T) {
	s.putCAs(t, func() bool { return s.random.IntN(2) == 0 })
}

// putCAs gives the cluster trusted CAs, as the network operator does, which fills the ConfigMap: where there is a proxy and none, no host joins.
func (s *soak) putCAs(t testing.TB, isFirstAlone func() bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "golden", "clusters", "traits", "trusted-ca", "trusted-ca.yaml"))
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
	s.put(t, string(out))
}

func (s *soak) changeLimits(t *testing.T) {
	s.settings.maxUnavailable = []int{2, 3, 4, max(4, s.options.nodes/20)}[s.random.IntN(4)]
	s.settings.maxParallel = 2 + s.random.IntN(30)
	s.settings.canaries = 1 + s.random.IntN(2)
	s.write(t)
}

func (s *soak) changeSigningKey(t *testing.T) {
	s.try(t, "the Secret with the signing keys", func() error {
		return s.Patch(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: signing.SecretName}},
			mergePatch(`{"metadata":{"annotations":{"`+signing.AddAnnotation+`":"soak"}}}`))
	})
}

func (s *soak) askForBoot(t testing.TB, m *machine) {
	t.Helper()
	s.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, published.RebootAnnotation, s.random.IntN(1_000_000)))
}

func (s *soak) removeNodes(t *testing.T) bool {
	if len(s.machines) <= s.options.nodes/2 {
		return false
	}
	return s.toEach(1+s.options.nodes/20, func(m *machine) bool { return m.name != s.cordoned }, s.remove)(t)
}

func (s *soak) pauseNodes(t *testing.T) {
	some := s.choose(2, isOn)
	for _, m := range some {
		s.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":"true"}}}`)
	}
	pause(s.ctx, 2*time.Second)
	for _, m := range some {
		s.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
	}
}

func (s *soak) powerAllOn(t *testing.T) bool {
	off := s.named(func(m *machine) bool { return !isOn(m) })
	for _, m := range off {
		s.powerOn(t, m)
	}
	return len(off) > 0
}

func (s *soak) stopAPIServer(t *testing.T) {
	plane := server.ControlPlane(t)
	s.observer.Disturb()
	must(t, plane.StopAPIServer())
	pause(s.ctx, time.Duration(1+s.random.IntN(6))*time.Second)
	must(t, plane.StartAPIServer())
	s.observer.Disturb()
}

func (s *soak) badDay(t *testing.T) {
	if len(s.badDays) == 0 {
		s.badDays = faults.All()
		s.random.Shuffle(len(s.badDays), func(i, j int) { s.badDays[i], s.badDays[j] = s.badDays[j], s.badDays[i] })
	}
	fault := s.badDays[0]
	s.badDays = s.badDays[1:]
	s.faults[badDayOf(fault)]++
	s.observer.Disturb()
	s.tell(t, sayFault+string(fault))
	pause(s.ctx, time.Duration(2+s.random.IntN(6))*time.Second)
	s.tell(t, sayFault+string(faults.None))
	s.observer.Disturb()
}

// badDayOf is how a fault is counted.
func badDayOf(f faults.Fault) string { return "(" + string(f) + ")" }

// tell tells the operator something. One that has ended is found at the next rest.
func (s *soak) tell(t testing.TB, text string) {
	t.Helper()
	if err := s.operator.say(text); err != nil {
		t.Logf("the operator was not told %q: %v", text, err)
	}
}

const faultDaysOff = "hosts off for days"

// days has hosts off for one to five days, in which inputs and keys change. Then they come back, and follow.
func (s *soak) days(t *testing.T) {
	off := s.choose(1+s.random.IntN(3), s.isOrdinary)
	for _, m := range off {
		s.powerOff(t, m)
	}
	s.faults[faultDaysOff]++
	pause(s.ctx, 2*time.Second)
	s.tell(t, sayPass+(time.Duration(24+s.random.IntN(96))*time.Hour).String())
	s.heartbeats(t)
	s.change(t, "mirror set", always(s.changeMirrors))
	s.change(t, "signing key", always(s.changeSigningKey))
	s.change(t, "proxy", always(s.changeProxy))
	pause(s.ctx, s.options.storm/4)
	for _, m := range off {
		s.powerOn(t, m)
	}
	s.rest(t)
}
