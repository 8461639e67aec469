package world

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/keys/signing"
	"wmco/internal/test/observer"
)

// firstSecret is the first password of the proxy. Later ones differ in their number.
const firstSecret = "world-password-0"

// settings are those of the operator that the storm changes.
type settings struct {
	maxUnavailable, maxParallel, canaries, maxPods, failureLimit, fetchNodes int
	settle                                                                   time.Duration
	// from is where executables come from.
	from string
	// exact has registries go through the gateway of each node.
	paused, exact bool
	// opens is when a maintenance window opens, for windowLasts; zero is none.
	opens time.Time
	// operators is how many lead at once; zero is one. It is no setting.
	operators int
}

func (x settings) String() string {
	windows, mode := "[]", "HostsFiles"
	if !x.opens.IsZero() {
		windows = fmt.Sprintf(`[{start: "%d %d * * *", duration: %s}]`, x.opens.Minute(), x.opens.Hour(), windowLasts)
	}
	if x.exact {
		mode = "Exact"
	}
	return fmt.Sprintf("{windowsReboots: Coordinate, mirrors: {mode: %s}, executables: {from: %s}, rollout: {fetchNodes: %d, settle: %s, paused: %t, canaries: %d, maxUnavailable: %d, maxParallel: %d, failureLimit: %d, windows: %s}, kubelet: {maxPods: %d}}",
		mode, x.from, x.fetchNodes, x.settle, x.paused, x.canaries, x.maxUnavailable, x.maxParallel, x.failureLimit, windows, x.maxPods)
}

// rules are what these settings have an observer check.
func (x settings) rules() observer.Rules {
	return observer.Rules{Unavailable: intstr.FromInt32(int32(x.maxUnavailable)), Parallel: x.maxParallel, Operators: x.operators} //nolint:gosec // some nodes
}

// recentSettings are those since the last rest: operators may still work by any of them.
func (w *world) recentSettings() []settings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.since)
}

// forgetSettings is called at rest.
func (w *world) forgetSettings() {
	w.settings.operators = 0
	w.earlier = map[string]string{}
	for name, n := range w.observer.Snapshot() {
		w.earlier[name] = n.Annotations[published.DesiredAnnotation]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = []settings{w.settings}
}

// isPaused reports whether every operator knows that rollouts are paused.
func (w *world) isPaused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused
}

func (w *world) setPaused(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = is
}

// setWindow is called when every operator knows the window; a zero time ends it.
func (w *world) setWindow(opens time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opens = opens
}

// isOutsideOfWindow reports whether there is a window, and it is not open. A start may be decided a moment before it closes.
func (w *world) isOutsideOfWindow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	return !w.opens.IsZero() && (now.Before(w.opens) || now.After(w.opens.Add(windowLasts+noticed)))
}

// write writes the settings.
func (w *world) write(t testing.TB) {
	t.Helper()
	w.observer.AllowRules(w.settings.rules())
	w.mu.Lock()
	w.since = append(w.since, w.settings)
	w.mu.Unlock()
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

// annotate gives a Node an annotation with a value that it has not had.
func (w *world) annotate(t testing.TB, m *machine, key string) {
	t.Helper()
	w.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, key, w.random.IntN(1_000_000)))
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
	source, mirror := fmt.Sprintf("registry-%d.example.com", i), fmt.Sprintf("mirror-%d.example.com:5000", w.random.IntN(1_000_000))
	if w.random.IntN(3) == 0 { // hosts files cannot express it
		source, mirror = source+"/team", mirror+"/other"
	}
	w.put(t, fmt.Sprintf(`{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: world-%d}, spec: {imageDigestMirrors: [{source: %s, mirrors: ["%s"]}]}}`, i, source, mirror))
}

// password returns one that was never used.
func (w *world) password() string {
	w.passwords++
	text := fmt.Sprintf("world-password-%d", w.passwords)
	w.observer.HideSecrets(text, base64.StdEncoding.EncodeToString([]byte("world-user:"+text)))
	return text
}

// changeMode has what hosts files cannot express go through the gateway of each node, or no longer.
func (w *world) changeMode(t *testing.T) {
	w.settings.exact = !w.settings.exact
	w.write(t)
	w.putMirrorSet(t, 0)
}

// windowLasts is how long a maintenance window is open.
const windowLasts = 2 * time.Hour

// openWindow has a maintenance window that opens later, and changes that wait for it. Some do not begin before it closes.
func (w *world) openWindow(t *testing.T) {
	w.calm(t)
	w.rest(t)
	opens := time.Now().UTC().Truncate(time.Minute).Add(time.Duration(60+w.random.IntN(180)) * time.Minute)
	w.settings.opens = opens
	w.write(t)
	pause(w.ctx, 10*time.Minute)
	w.setWindow(opens)
	w.changeKubelets(t)
	w.toEach(3, w.isOrdinary, w.loseFeature)(t)
	pause(w.ctx, time.Until(opens.Add(windowLasts-time.Duration(w.random.Int64N(int64(10*time.Minute))))))
	w.changeKubelets(t)
	pause(w.ctx, time.Hour)
	w.setWindow(time.Time{})
	w.settings.opens = time.Time{}
	w.write(t)
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
	w.settings.maxParallel = 1 + w.random.IntN(3)
	w.settings.canaries, w.settings.failureLimit = 1+w.random.IntN(2), 1+w.random.IntN(2)
	w.settings.settle = []time.Duration{0, time.Minute, 10 * time.Minute}[w.random.IntN(3)]
	w.write(t)
}

func (w *world) changeKubelets(t *testing.T) {
	w.settings.maxPods = 100 + w.random.IntN(150)
	w.write(t)
}

// askTwice has a person ask for a boot, then Windows wait for one, and for another one soon after.
func (w *world) askTwice(t testing.TB, m *machine) {
	w.askForBoot(t, m)
	pause(w.ctx, time.Hour)
	w.askWindows(t, m, bundle.BootForUpdates)
	pause(w.ctx, time.Hour)
	w.askWindows(t, m, bundle.BootForComponents)
}

// pauseAll pauses rollouts in the middle of a change, and a person asks for boots. When the operator knows, an input changes.
func (w *world) pauseAll(t *testing.T) {
	w.changeKubelets(t)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(5*time.Minute))))
	w.settings.paused = true
	w.write(t)
	w.toEach(3, w.isOrdinary, w.askForBoot)(t)
	pause(w.ctx, 10*time.Minute)
	w.setPaused(true)
	w.putMirrorSet(t, 0)
	pause(w.ctx, 20*time.Minute)
	w.setPaused(false)
	w.settings.paused = false
	w.write(t)
}

// deleteMirrors deletes all mirror sets. A person confirms it, or they come back.
func (w *world) deleteMirrors(t *testing.T) {
	for i := range mirrorSets {
		w.try(t, "a mirror set", func() error { return client.IgnoreNotFound(w.Delete(w.ctx, mirrorSet(i))) })
	}
	pause(w.ctx, 30*time.Minute)
	if w.random.IntN(2) == 0 {
		for _, m := range w.named(isOn) {
			w.edit(t, m.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, published.ConfirmAnnotation, published.InputMirrors))
		}
		pause(w.ctx, time.Hour)
	}
	w.putMirrorSet(t, 0)
}

func (w *world) changeSigningKey(t *testing.T) {
	w.try(t, "the Secret with the signing keys", func() error {
		return w.Patch(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: signing.SecretName}},
			mergePatch(`{"metadata":{"annotations":{"`+signing.AddAnnotation+`":"world"}}}`))
	})
}

func (w *world) askForBoot(t testing.TB, m *machine) {
	t.Helper()
	w.annotate(t, m, published.RebootAnnotation)
}

func (w *world) removeNodes(t *testing.T) bool {
	if len(w.machines) <= w.options.nodes/2 {
		return false
	}
	return w.toEach(1+w.options.nodes/20, func(m *machine) bool { return m.entry == "" && m.name != w.cordoned }, w.remove)(t)
}

func (w *world) pauseNodes(t *testing.T) {
	some := w.choose(2, isOn)
	for _, m := range some {
		w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":"true"}}}`)
	}
	w.putMirrorSet(t, 0)
	pause(w.ctx, 20*time.Minute)
	for _, m := range some {
		w.edit(t, m.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
	}
}
