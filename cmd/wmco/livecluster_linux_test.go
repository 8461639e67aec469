package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/internal/cli"
	"wmco/internal/test/testenv/readonly"
	"wmco/layout"
	"wmco/render"
)

// liveCluster is an API server with the example cluster of platform None, and what an operator has published for its one node, win-0.
type liveCluster struct {
	api *readonly.API
	// files has the inputs as manifests, without what only a cluster has.
	files string
	// published is the bundle of the node, and key the operator's key of secret digests.
	published desired.Rendered
	// publicKeys are those with which the operator signs, in PEM.
	publicKeys []byte
}

const goldenPayload = "../../golden/payload"

// newLiveCluster serves the cluster, and sets KUBECONFIG. Facts are those of the host of the node.
func newLiveCluster(t *testing.T, facts bundle.Facts) *liveCluster {
	t.Helper()
	c := &liveCluster{api: &readonly.API{}, files: t.TempDir()}
	for _, o := range clusterObjects(t, "common", "none") {
		if o.GetKind() != "Node" && o.GetName() != render.InstancesConfigMap {
			c.add(t, o.Object)
		}
	}
	node := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
	node.Name, node.UID, node.Labels = "win-0", "uid-of-win-0", map[string]string{corev1.LabelOSStable: "windows", corev1.LabelWindowsBuild: "10.0.20348"}
	subnet := "10.132.1.0/24"
	if n := facts.Network(layout.OverlayNetwork); n.AddressPrefix != "" {
		subnet = n.AddressPrefix
	}
	node.Annotations = map[string]string{"k8s.ovn.org/hybrid-overlay-node-subnet": subnet}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: facts.Addresses[0]}}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	begun := metav1.NewTime(now.Add(-time.Hour))
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: begun},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: begun},
	}
	report := published.Report{State: published.StateUnpublished, Facts: &facts, Features: published.Features()}
	text, err := report.Encode()
	must(t, err)
	node.Annotations[published.ReportAnnotation] = text
	c.write(t, "node", node)
	c.publish(t, &node, report)
	server := httptest.NewServer(c.api)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig))
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	return c
}

// write writes an object among the manifests.
func (c *liveCluster) write(t *testing.T, name string, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.files, strings.NewReplacer(":", "-", "/", "-").Replace(name)+".json"), text, 0o600))
}

// add serves an object, and writes it among the manifests.
func (c *liveCluster) add(t *testing.T, object map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: object}
	c.api.Objects = append(c.api.Objects, u)
	c.write(t, u.GetAPIVersion()+"-"+u.GetKind()+"-"+u.GetNamespace()+"-"+u.GetName(), object)
}

// serve serves an object that no manifest has.
func (c *liveCluster) serve(t *testing.T, version, kind string, object any) {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	served := unstructured.Unstructured{Object: u}
	served.SetAPIVersion(version)
	served.SetKind(kind)
	c.api.Objects = append(c.api.Objects, served)
}

// publish renders and signs as the operator does, and serves the Secrets and the Node.
func (c *liveCluster) publish(t *testing.T, node *corev1.Node, report published.Report) {
	t.Helper()
	store := fake.NewClientBuilder().Build()
	keys := &signing.Keys{Live: store, Client: store, Namespace: gather.OperatorNamespace, Now: time.Now}
	must(t, keys.BeginTerm(t.Context()))
	var err error
	c.publicKeys, err = keys.ReadPublicKeys(t.Context())
	must(t, err)
	var secret corev1.Secret
	must(t, store.Get(t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: signing.SecretName}, &secret))
	c.serve(t, "v1", "Secret", &secret)

	hosts, err := desired.ReadHosts(t.Context(), desired.Source{
		Objects: objects.NewPathsReader([]string{c.files}, nil), Gather: gather.Options{Complete: true}, Key: bundle.Key("the key of the operator's digests"), Payload: goldenPayload, SigningKeys: c.publicKeys,
	})
	must(t, err)
	list, findings, err := hosts.RenderBundles(hosts.ListJoined())
	must(t, err)
	if findings.Refused() || len(list) != 1 {
		t.Fatalf("%d nodes, %+v", len(list), findings)
	}
	c.published = list[0]
	wanted, err := layers.PackBundle(node.Name, c.published.Bundle.Bundle)
	must(t, err)
	changes := layers.PlanChanges([]layers.Wanted{wanted}, layers.Observed{Nodes: []layers.Node{{Name: node.Name, Known: true}}})
	for _, s := range changes.Create {
		c.serve(t, "v1", "Secret", s.SecretObject(gather.OperatorNamespace))
	}
	d := wanted.DesiredAnnotation(gather.OperatorNamespace, bundle.ImpactRestart)
	node.Annotations[published.DesiredAnnotation], err = keys.SignDesired(published.NodeID{Name: node.Name, UID: string(node.UID)}, d)
	must(t, err)
	report.State, report.Desired, report.Applied, report.Layers = published.StateApplied, d.Bundle, d.Bundle, []bundle.Digest{d.Cluster.Digest, d.Node.Digest}
	node.Annotations[published.ReportAnnotation], err = report.Encode()
	must(t, err)
	c.serve(t, "v1", "Node", node)
}

// wmco runs a command line.
func (c *liveCluster) wmco(t *testing.T, args ...string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, version: "test"}, args)
	return answer{status, stdout.String(), stderr.String()}
}

func factsOfNone(t *testing.T) bundle.Facts {
	t.Helper()
	file, err := os.Open("../../golden/facts/none.json")
	must(t, err)
	defer file.Close()
	all, err := bundle.DecodeFacts(file)
	must(t, err)
	facts := all[0]
	facts.HostName = "WIN-0"
	return facts
}

// TestNothingChangesInAQuietCluster: what the command line renders is what the operator has published, and what it cannot know is kept.
func TestNothingChangesInAQuietCluster(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*liveCluster)
		args   func(*liveCluster) []string
		want   string
	}{
		{name: "the cluster with itself"},
		{name: "with the payload of the operator", args: func(*liveCluster) []string {
			return []string{"--from", "cluster", "--against", "cluster", "--payload", goldenPayload}
		}},
		{name: "its manifests with the cluster", args: func(c *liveCluster) []string { return []string{"--from", c.files, "--against", "cluster"} }},
		{name: "the cluster with its manifests", args: func(c *liveCluster) []string { return []string{"--from", "cluster", "--against", c.files} }},
		{name: "the cluster with a preview of it", args: func(c *liveCluster) []string {
			return []string{"--from", "cluster", "--against", c.preview(t, "cluster")}
		}},
		{name: "the cluster with a preview of its manifests", args: func(c *liveCluster) []string {
			return []string{"--from", "cluster", "--against", c.preview(t, c.files)}
		}},
		{name: "the keys of the operator are not known", change: (*liveCluster).forgetKeys},
		{name: "the user may not read layers", change: func(c *liveCluster) { c.api.Refuses = []string{"list secrets " + gather.OperatorNamespace} }, want: `
rollout: no node changes
  note: the user cannot list secrets in namespace openshift-windows-machine-config-operator (fix: add the rule {apiGroups: [""], resources: ["secrets"], verbs: ["list"]} to a Role in namespace openshift-windows-machine-config-operator that is bound to this user)
  note: win-0: the layers of the node cannot be read: its impact is that of the difference between the objects
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newLiveCluster(t, factsOfNone(t))
			args := []string{"--from", "cluster", "--against", "cluster"}
			if c.args != nil {
				args = c.args(cluster)
			}
			if c.change != nil {
				c.change(cluster)
			}
			got := cluster.wmco(t, append([]string{"diff"}, args...)...)
			if diff := cmp.Diff(answer{cli.ExitDone, "no change: win-0\n" + c.want, ""}, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// preview returns a folder with the rendered bundles.
func (c *liveCluster) preview(t *testing.T, from string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "preview")
	if got := c.wmco(t, "render", "--from", from, "--all", "--out", out); got.status != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	return out
}

// forgetKeys takes the Secret of the keys away, before the first request.
func (c *liveCluster) forgetKeys() {
	c.api.Objects = slices.DeleteFunc(c.api.Objects, func(o unstructured.Unstructured) bool { return o.GetName() == signing.SecretName })
}

// TestPreviewsBringTheKeysOfTheCluster: what render shows of a live cluster is what its operator publishes.
func TestPreviewsBringTheKeysOfTheCluster(t *testing.T) {
	c := newLiveCluster(t, factsOfNone(t))
	for _, x := range []struct {
		from string
		want bool
	}{{"cluster", true}, {c.files, false}} {
		out := t.TempDir()
		if got := c.wmco(t, "render", "--from", x.from, "--node", "win-0", "--out", filepath.Join(out, "win-0")); got.status != cli.ExitDone {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(filepath.Join(out, "win-0", "C", "k", "desired-state-keys.pem"))
		if x.want && string(text) != string(c.publicKeys) || !x.want && err == nil {
			t.Errorf("%s: %v\n%s", x.from, err, text)
		}
	}
}
