package forecast

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/internal/hostsim/simulation"
)

const clusters = "../../golden/clusters"

func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scene is a cluster with nodes that have their published bundles, as files.
type scene struct {
	t     *testing.T
	dir   string
	nodes []corev1.Node
}

func newScene(t *testing.T, size int) *scene {
	t.Helper()
	return newSceneWith(t, size, "")
}

// newSceneWith returns a scene in which bundles with a payload are published. A forecast knows none.
func newSceneWith(t *testing.T, size int, payload string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	file, err := os.Open("../../golden/facts/none.json")
	must(t, err)
	defer file.Close()
	facts, err := bundle.DecodeFacts(file)
	must(t, err)
	for i := range size {
		subnet := fmt.Sprintf("10.132.%d.0/24", i)
		f := simulation.FactsAt(facts[0], fmt.Sprintf("WIN-%d", i), fmt.Sprintf("10.0.140.%d", 30+i), subnet)
		n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
		n.Name, n.Labels = strings.ToLower(f.HostName), map[string]string{corev1.LabelOSStable: "windows", corev1.LabelWindowsBuild: "10.0.20348"}
		n.Annotations = map[string]string{"k8s.ovn.org/hybrid-overlay-node-subnet": subnet}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: f.Addresses[0]}}
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon().Add(-24 * time.Hour))},
			{Type: published.Condition, LastHeartbeatTime: metav1.NewTime(noon()), LastTransitionTime: metav1.NewTime(noon().Add(-time.Hour))},
		}
		s.nodes = append(s.nodes, n)
		s.report(i, published.Report{State: published.StateUnpublished, Facts: &f, Features: published.Features()})
	}
	s.write()
	s.publish("a key of the cluster's own", payload)
	return s
}

func (s *scene) report(i int, r published.Report) {
	s.t.Helper()
	text, err := r.Encode()
	must(s.t, err)
	s.nodes[i].Annotations[published.ReportAnnotation] = text
}

// write writes the Nodes.
func (s *scene) write() {
	s.t.Helper()
	for _, n := range s.nodes {
		s.put(n.Name, n)
	}
}

func (s *scene) put(name string, object any) {
	s.t.Helper()
	text, err := json.Marshal(object)
	must(s.t, err)
	must(s.t, os.WriteFile(filepath.Join(s.dir, name+".json"), text, 0o600))
}

// rendered are the hosts of the cluster, with more objects.
func (s *scene) rendered(key bundle.Key, payload string, more ...string) (*desired.Hosts, []desired.Rendered) {
	s.t.Helper()
	paths := append([]string{filepath.Join(clusters, "common"), filepath.Join(clusters, "none", "infrastructure.yaml"), filepath.Join(clusters, "none", "controllerconfig.yaml"), filepath.Join(clusters, "none", "machineconfigs.yaml"), s.dir}, more...)
	source := desired.Source{Objects: objects.NewPathsReader(paths, nil), Gather: gather.Options{Complete: true}, Key: key, Payload: payload}
	if key != nil { // as the operator does
		source.SigningKeys = []byte("the public keys of the operator")
	}
	hosts, err := desired.ReadHosts(s.t.Context(), source)
	must(s.t, err)
	list, findings, err := hosts.RenderBundles(hosts.ListJoined())
	must(s.t, err)
	if findings.Refused() {
		s.t.Fatalf("%+v", findings)
	}
	return hosts, list
}

// publish publishes the rendered bundles, with other digests of secrets than a preview has. All nodes have it, and a restart and a boot
// behind them.
func (s *scene) publish(key, payload string) {
	s.t.Helper()
	_, list := s.rendered(bundle.Key(key), payload)
	var wanted []layers.Wanted
	var o layers.Observed
	annotations := map[string]string{}
	for _, r := range list {
		r.Bundle.Node.AuthorizedKeys = []bundle.AuthorizedKey{loginKey(s.t)}
		w, err := layers.PackBundle(r.Node.Name, r.Bundle.Bundle)
		must(s.t, err)
		wanted, o.Nodes = append(wanted, w), append(o.Nodes, layers.Node{Name: r.Node.Name, Known: true})
		annotations[r.Node.Name], err = w.DesiredAnnotation(gather.OperatorNamespace, bundle.ImpactRestart).Encode()
		must(s.t, err)
	}
	changes := layers.PlanChanges(wanted, o)
	for _, secret := range changes.Create {
		object := secret.SecretObject(gather.OperatorNamespace)
		object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		s.put(secret.Name, object)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		d, err := published.DecodeDesired(annotations[n.Name])
		must(s.t, err)
		report, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		must(s.t, err)
		report.State, report.Desired, report.Applied, report.Layers = published.StateApplied, d.Bundle, d.Bundle, []bundle.Digest{d.Cluster.Digest, d.Node.Digest}
		n.Annotations[published.DesiredAnnotation] = annotations[n.Name]
		s.report(i, report)
		var state plan.State
		for _, x := range []struct {
			impact bundle.Impact
			took   time.Duration
		}{{bundle.ImpactRestart, time.Minute}, {bundle.ImpactNone, 5 * time.Second}} {
			begun := noon().Add(-10 * time.Hour)
			state.Past = append(state.Past, plan.Turn{Bundle: bundle.Of([]byte(n.Name)), Impact: x.impact, Begun: begun, Permitted: begun, Ended: begun.Add(x.took), Result: published.StateApplied})
		}
		text, err := state.Encode()
		must(s.t, err)
		n.Annotations[published.RolloutAnnotation] = text
	}
	s.write()
}

// loginKey is the key of an operator that has logged in to hosts. No preview has it.
func loginKey(t *testing.T) bundle.AuthorizedKey {
	t.Helper()
	const line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqM6xq4rJ0Zq3l9Qm0bqg8zq0d2kqk0X1q3l9Qm0bqg"
	fingerprint, err := bundle.Fingerprint(line)
	must(t, err)
	return bundle.AuthorizedKey{Fingerprint: fingerprint, Line: line, Impact: bundle.ImpactNone}
}

func (s *scene) file(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "change.yaml")
	must(s.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// forecast is that of a change, by a reader of Nodes and layers.
func (s *scene) forecast(reader objects.Reader, more ...string) Forecast {
	s.t.Helper()
	_, before := s.rendered(nil, "")
	hosts, after := s.rendered(nil, "", more...)
	f, findings, err := Make(s.t.Context(), reader, Change{
		Before: before, After: after, Platform: hosts.Cluster.Platform, Settings: hosts.Cluster.Settings, Namespace: gather.OperatorNamespace, Now: noon(),
	})
	must(s.t, err)
	if len(findings) > 0 {
		s.t.Fatalf("%+v", findings)
	}
	return f
}

func (s *scene) reader() objects.Reader { return objects.NewPathsReader([]string{s.dir}, nil) }

const mirror = `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: quay}, spec: {imageDigestMirrors: [{source: quay.io, mirrors: ["mirror.example.com:5000"]}]}}`

const proxy = `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://proxy.example.com:3128", noProxy: .cluster.local}}`

const parallelTwo = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator}, data: {config.yaml: "rollout: {maxParallel: 2}"}}`

func TestNothingChanges(t *testing.T) {
	s := newScene(t, 3)
	if f := s.forecast(s.reader()); !f.IsEmpty() {
		t.Errorf("%s", f.Text())
	}
}

func TestAMirror(t *testing.T) {
	for _, payload := range []string{"", "../../golden/payload"} {
		t.Run(payload, func(t *testing.T) { testAMirror(t, newSceneWith(t, 3, payload)) })
	}
}

func testAMirror(t *testing.T, s *scene) {
	t.Helper()
	if f := s.forecast(s.reader()); !f.IsEmpty() {
		t.Errorf("%s", f.Text())
	}
	want := `rollout: 3 nodes change: restart services on 0, drain 0, reboot 0 of them; about 10s, from earlier updates in this cluster
  +0s       none     win-0 (canary)
  +5s       none     win-1, win-2
`
	if diff := cmp.Diff(want, s.forecast(s.reader(), s.file(mirror)).Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAProxy restarts services, two nodes at once by the changed settings. One node is paused.
func TestAProxy(t *testing.T) {
	s := newScene(t, 5)
	s.nodes[3].Annotations[published.PausedAnnotation] = ""
	s.write()
	f := s.forecast(s.reader(), s.file(proxy+parallelTwo))
	want := `rollout: 4 nodes change: restart services on 4, drain 0, reboot 0 of them; about 5m0s, from earlier updates in this cluster
  +0s       restart  win-0 (canary)
  +3m0s     restart  win-1, win-2
  +4m0s     restart  win-4
  not changed: win-3: the node is paused
`
	if diff := cmp.Diff(want, f.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = `
### Rollout

4 nodes change: restart services on 4, drain 0, reboot 0 of them; about 5m0s, from earlier updates in this cluster.

| begins after | nodes | impact |
|---|---|---|
| 0s | ` + "`win-0`" + ` (canary) | restart |
| 3m0s | ` + "`win-1`, `win-2`" + ` | restart |
| 4m0s | ` + "`win-4`" + ` | restart |

* not changed: ` + "`win-3`" + `: the node is paused
`
	if diff := cmp.Diff(want, f.Markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text, err := json.Marshal(f)
	must(t, err)
	want = `{"nodes":4,"restarts":4,"drains":0,"boots":0,"takesSeconds":300,"order":[{"node":"win-0","impact":"restart","canary":true,"beginsSeconds":0,"endsSeconds":60},` +
		`{"node":"win-1","impact":"restart","beginsSeconds":180,"endsSeconds":240},{"node":"win-2","impact":"restart","beginsSeconds":180,"endsSeconds":240},` +
		`{"node":"win-4","impact":"restart","beginsSeconds":240,"endsSeconds":300}],"left":[{"node":"win-3","phase":"Waiting","reason":"Paused","message":"the node is paused","impact":"restart"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// awaitBoot has Windows wait for a boot of a node.
func (s *scene) awaitBoot(i int) {
	s.t.Helper()
	report, err := published.DecodeReport(s.nodes[i].Annotations[published.ReportAnnotation])
	must(s.t, err)
	report.Facts.PendingBoots = []bundle.BootReason{bundle.BootForUpdates}
	s.report(i, report)
	s.write()
}

// TestWindowsWaitsForBoots: with Coordinate these are turns of the rollout too, which a window of the settings may hold. One node is paused.
func TestWindowsWaitsForBoots(t *testing.T) {
	for name, c := range map[string]struct{ settings, change, want string }{
		"no change": {"windowsReboots: Coordinate", "", `rollout: no node changes; drain and reboot 2 nodes, as Windows needs a reboot; at least 2m0s: no measured update with impact reboot in this cluster yet
  +0s       reboot   win-1 (Windows needs a reboot)
  +2m0s     reboot   win-2 (Windows needs a reboot)
  not changed: win-3: the node has the newest bundle: Windows needs a reboot (a Windows update was installed): the node is paused
`},
		"beside a change": {"windowsReboots: Coordinate", proxy, `rollout: 3 nodes change: restart services on 3, drain 0, reboot 0 of them; drain and reboot 2 nodes, as Windows needs a reboot; at least 6m0s: no measured update with impact reboot in this cluster yet
  +0s       restart  win-0 (canary)
  +3m0s     restart  win-1, win-2
  +4m0s     reboot   win-1 (Windows needs a reboot)
  +6m0s     reboot   win-2 (Windows needs a reboot)
  not changed: win-3: the node is paused
`},
		"a closed window": {`windowsReboots: Coordinate\nrollout: {windows: [{start: \"0 22 * * *\", duration: 4h, impacts: [reboot]}]}`, "", `rollout: no node changes; drain and reboot 2 nodes, as Windows needs a reboot; at least 10h2m0s: no measured update with impact reboot in this cluster yet
  +10h0m0s  reboot   win-1 (Windows needs a reboot)
  +10h2m0s  reboot   win-2 (Windows needs a reboot)
  not changed: win-3: the node has the newest bundle: Windows needs a reboot (a Windows update was installed): the node is paused
  note: updates with impact reboot wait for a window of rollout.windows; the next one opens at 2026-01-01T22:00:00Z
`},
		"only reported": {"windowsReboots: Report", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, 4)
			settings := `{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator}, data: {config.yaml: "` + c.settings + `"}}`
			must(t, os.WriteFile(filepath.Join(s.dir, "settings.yaml"), []byte(settings), 0o600))
			s.publish("a key of the cluster's own", "")
			for i := 1; i < 4; i++ {
				s.awaitBoot(i)
			}
			s.nodes[3].Annotations[published.PausedAnnotation] = ""
			s.write()
			var change []string
			if c.change != "" {
				change = []string{s.file(c.change)}
			}
			got := s.forecast(s.reader(), change...)
			text := ""
			if !got.IsEmpty() {
				text = got.Text()
			}
			if diff := cmp.Diff(c.want, text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAChangeBeforeIsOnItsWay: one node has not got the mirror that the others have. It gets mirror and proxy at once.
func TestAChangeBeforeIsOnItsWay(t *testing.T) {
	s := newScene(t, 3)
	old := s.nodes[2]
	old.Annotations = map[string]string{}
	for k, v := range s.nodes[2].Annotations {
		old.Annotations[k] = v
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "mirror.yaml"), []byte(mirror), 0o600))
	s.publish("a key of the cluster's own", "")
	s.nodes[2] = old
	s.write()
	want := `rollout: 1 node changes: restart services on 0, drain 0, reboot 0 of them; about 5s, from earlier updates in this cluster
  +0s       none     win-2
  note: win-2: the published bundle differs from what the objects of the cluster give now: a change is under way, or the operator has another version than this program. The forecast has all of it
`
	if diff := cmp.Diff(want, s.forecast(s.reader()).Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f := s.forecast(s.reader(), s.file(proxy)); f.Restarts != 3 || f.Nodes != 3 {
		t.Errorf("%s", f.Text())
	}
}

// TestNodesThatWaitForAdoption are not changed, and the plan of their adoption is shown if the operator has examined the host.
func TestNodesThatWaitForAdoption(t *testing.T) {
	s := newScene(t, 4)
	for i := 1; i < 4; i++ {
		for _, key := range []string{published.DesiredAnnotation, published.ReportAnnotation, published.RolloutAnnotation} {
			delete(s.nodes[i].Annotations, key)
		}
		s.nodes[i].Annotations[published.VersionAnnotation] = "10.18.0-1"
	}
	s.report(3, published.Report{State: published.StateUnpublished, Adopting: true, Impact: bundle.ImpactDrain, Message: "its adoption has impact drain: 9 actions\n, restarts containerd"})
	s.write()
	want := `rollout: 1 node changes: restart services on 0, drain 0, reboot 0 of them; about 5s, from earlier updates in this cluster
  +0s       none     win-0 (canary)
  not changed: win-1, win-2: configured by the existing operator; its adoption applies the complete bundle. To see the changes here and in wmco status NODE, run wmco pause NODE, then wmco adopt NODE
  not changed: win-3: waiting for adoption, which applies the complete bundle: its adoption has impact drain: 9 actions , restarts containerd
`
	f := s.forecast(s.reader(), s.file(mirror))
	if diff := cmp.Diff(want, f.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if left := f.Left; len(left) != 3 || left[2].Impact != bundle.ImpactDrain || left[0].Impact != "" {
		t.Errorf("%+v", left)
	}
	if f := s.forecast(s.reader()); f.IsEmpty() {
		t.Error("without a change, waiting nodes are not listed")
	}
	s.nodes[1].Annotations[published.AdoptAnnotation] = published.AdoptTrue
	s.write()
	f = s.forecast(s.reader())
	if left := f.Left; len(left) != 3 || !strings.Contains(left[0].Message, "adoption requested, not started yet") || strings.Contains(left[0].Message, "wmco adopt") || !strings.Contains(left[1].Message, "wmco adopt") {
		t.Errorf("an adoption that is asked for: %+v", left)
	}
}

// TestLayersThatCannotBeRead are those of a user without the right: here the Nodes are alone.
func TestLayersThatCannotBeRead(t *testing.T) {
	s := newScene(t, 2)
	alone := t.TempDir()
	for _, n := range s.nodes {
		text, err := json.Marshal(n)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(alone, n.Name+".json"), text, 0o600))
	}
	f := s.forecast(objects.NewPathsReader([]string{alone}, nil), s.file(proxy))
	if f.Restarts != 2 || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "win-0, win-1: the layers of the node cannot be read") {
		t.Errorf("%s", f.Text())
	}
}

// TestAForecastHoldsNoSecret: the layers that it reads hold the credentials of registries and kubeconfigs.
func TestAForecastHoldsNoSecret(t *testing.T) {
	s := newScene(t, 1)
	_, list := s.rendered(nil, "", s.file(mirror))
	f := s.forecast(s.reader(), s.file(mirror))
	text, err := json.Marshal(f)
	must(t, err)
	secrets := 0
	for _, file := range list[0].Bundle.Files() {
		for line := range strings.Lines(string(file.Content.Data)) {
			if !file.Secret || len(line) < 20 {
				continue
			}
			secrets++
			for _, view := range []string{string(text), f.Text(), f.Markdown(), fmt.Sprintf("%+v", f)} {
				if strings.Contains(view, strings.TrimSpace(line)) {
					t.Errorf("%s is shown in part", file.Path)
				}
			}
		}
	}
	if secrets == 0 {
		t.Error("the bundle holds no secret")
	}
}
