package mustgather

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
)

// clusterLayer is one with a secret file that a service reads, and a mirror.
func clusterLayer(token, mirror string) bundle.Layer {
	key := bundle.Key("0123456789abcdef0123456789abcdef")
	l := bundle.Layer{
		Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined,
		Files: []bundle.File{
			{
				Path: `C:\k\bootstrap-kubeconfig`, Digest: key.Of([]byte(token)), Secret: true, Access: bundle.AccessAdmins, Impact: bundle.ImpactRestart,
				Content: bundle.Content{Data: []byte(token), Preview: []byte("masked")},
			},
			{
				Path: `C:\k\hosts.toml`, Digest: bundle.Of([]byte(mirror)), Size: int64(len(mirror)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
				Content: bundle.Content{Data: []byte(mirror)},
			},
		},
		Services: []bundle.Service{{
			Name: "kubelet", Start: bundle.StartAuto, Argv: []string{`C:\k\kubelet.exe`}, Reads: []string{`C:\k\bootstrap-kubeconfig`}, Impact: bundle.ImpactRestart,
		}},
	}
	l.Normalize()
	return l
}

// cluster is a Node with its published and its applied bundle, and the Secrets of both.
func cluster(t *testing.T, has, wants bundle.Layer, keeps func(label string) bool) string {
	t.Helper()
	own := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined}
	var objects []any
	packed := map[string]published.Packed{}
	for name, l := range map[string]bundle.Layer{"has": has, "wants": wants, "own": own} {
		p, err := published.Pack(l)
		if err != nil {
			t.Fatal(err)
		}
		packed[name] = p
		for _, s := range p.Secrets {
			if keeps(p.Layer.Label()) {
				objects = append(objects, corev1.Secret{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: s.Name, Labels: map[string]string{published.LayerLabel: p.Layer.Label()}},
					Data:       map[string][]byte{published.SecretKey: s.Data},
				})
			}
		}
	}
	digest := func(cluster string) bundle.Digest {
		d, err := bundle.DigestLayers(packed[cluster].Layer.Digest, packed["own"].Layer.Digest)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	desired, err := published.Desired{
		Bundle: digest("wants"), MaxImpact: bundle.ImpactNone, Namespace: gather.OperatorNamespace, Cluster: packed["wants"].Layer, Node: packed["own"].Layer,
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	report, err := published.Report{
		Program: "v1", State: published.StateNeedsPermission, Desired: digest("wants"), Applied: digest("has"),
		Layers: []bundle.Digest{packed["has"].Layer.Digest, packed["own"].Layer.Digest},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "win-a", Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{published.DesiredAnnotation: desired, published.ReportAnnotation: report},
		},
	})
	var text strings.Builder
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(data) + "\n")
	}
	return text.String()
}

// TestThePlanOfANode is the difference between the bundle that it has and the one that it should have, secrets compared and not shown.
func TestThePlanOfANode(t *testing.T) {
	type plan struct {
		MaxImpact, Impact bundle.Impact
		Restarts          []string
		Changes           []string
	}
	first := clusterLayer("token: sesame-first", "server = \"https://a.io\"\n")
	for name, tt := range map[string]struct {
		wants bundle.Layer
		want  plan
	}{
		"the same": {first, plan{MaxImpact: bundle.ImpactNone, Impact: bundle.ImpactNone}},
		"a mirror": {
			clusterLayer("token: sesame-first", "server = \"https://mirror\"\n"),
			plan{bundle.ImpactNone, bundle.ImpactNone, nil, []string{`change file C:\k\hosts.toml none`}},
		},
		"a secret of the same length, and a mirror": {
			clusterLayer("token: sesame-other", "server = \"https://mirror\"\n"),
			plan{bundle.ImpactNone, bundle.ImpactRestart, []string{"kubelet"}, []string{`change file C:\k\bootstrap-kubeconfig restart`, `change file C:\k\hosts.toml none`}},
		},
	} {
		dir := t.TempDir()
		if _, err := Collect(t.Context(), source(t, cluster(t, first, tt.wants, func(string) bool { return true }), noLogs), dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "nodes", "win-a", "plan.json"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var read planned
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		got := plan{MaxImpact: read.MaxImpact, Impact: read.Impact, Restarts: read.Restarts}
		for _, c := range read.Changes {
			got.Changes = append(got.Changes, string(c.Action)+" "+string(c.Entry)+" "+string(c.Impact))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || (read.Applied == read.Desired) != (len(got.Changes) == 0) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if all := whole(t, dir); strings.Contains(all, "sesame") || !strings.Contains(all, "bootstrap-kubeconfig") {
			t.Errorf("%s: a secret is in the folder, or its file is not", name)
		}
	}
}

// TestAPlanWithoutItsLayersIsMissing: the Secrets of what a node has may be gone.
func TestAPlanWithoutItsLayersIsMissing(t *testing.T) {
	has, wants := clusterLayer("token: sesame-first", "a"), clusterLayer("token: sesame-first", "b")
	wanted, err := published.Pack(wants)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	summary, err := Collect(t.Context(), source(t, cluster(t, has, wants, func(label string) bool { return label == wanted.Layer.Label() }), noLogs), dir)
	if err != nil || !strings.Contains(strings.Join(summary.Missing, "\n"), "Node win-a, plan: a layer of the applied or of the desired bundle is missing") {
		t.Errorf("%v, %q", err, summary.Missing)
	}
	if _, err := os.Stat(filepath.Join(dir, "nodes", "win-a", "plan.json")); !os.IsNotExist(err) {
		t.Errorf("there is a plan: %v", err)
	}
}
