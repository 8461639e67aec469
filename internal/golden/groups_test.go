package golden

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/render/preview"
)

const mirrorOfApps = `apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: apps}
spec:
  imageDigestMirrors:
  - source: quay.io/team
    mirrors: [%s/team]
`

// hundred is a golden folder of a cluster with 100 nodes that have joined, and one host that has not.
func hundred(t *testing.T) string {
	t.Helper()
	var nodes, entries, facts strings.Builder
	for i := range 100 {
		address := fmt.Sprintf("10.0.150.%d", i+1)
		fmt.Fprintf(&entries, "  %s: username=Administrator\n", address)
		fmt.Fprintf(&nodes, `---
apiVersion: v1
kind: Node
metadata:
  name: win-%03d
  annotations: {k8s.ovn.org/hybrid-overlay-node-subnet: 10.133.%d.0/24}
  labels: {kubernetes.io/os: windows, windowsmachineconfig.openshift.io/byoh: "true"}
status:
  addresses: [{type: InternalIP, address: %s}]
  nodeInfo: {operatingSystem: windows}
`, i, i, address)
		fmt.Fprintf(&facts, `{"schema":1,"hostName":"WIN-%03d","addresses":[%q],"defaultRoute":{"address":%[2]q,"gateway":"10.0.0.1"},"osBuild":"10.0.20348","features":["Containers"],
"networks":[{"name":"OVNKubernetesHybridOverlayNetwork","addressPrefix":"10.133.%[3]d.0/24","managementIP":%[2]q}],"endpoints":[{"name":"VIPEndpoint","network":"OVNKubernetesHybridOverlayNetwork","ip":"10.133.%[3]d.5"}]}
`, i, address, i)
	}
	base := t.TempDir()
	clusters, err := filepath.Abs("../../golden/clusters")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"controllerconfig.yaml", "infrastructure.yaml", "machineconfigs.yaml"} {
		text, err := os.ReadFile(filepath.Join(clusters, "none", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(base, "in", name), string(text))
	}
	writeFile(t, filepath.Join(base, "in", "nodes.yaml"), nodes.String())
	writeFile(t, filepath.Join(base, "in", "instances.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: windows-instances, namespace: openshift-windows-machine-config-operator}\ndata:\n"+entries.String()+"  10.0.151.1: username=Administrator\n")
	writeFile(t, filepath.Join(base, "in", "mirrors.yaml"), fmt.Sprintf(mirrorOfApps, "mirror.example.com"))
	writeFile(t, filepath.Join(base, "facts.json"), facts.String())
	link := filepath.Join(base, "clusters") // paths of golden.yaml are relative
	if err := os.Symlink(clusters, link); err != nil {
		t.Skip("this system has no symbolic links:", err)
	}
	dir := filepath.Join(base, "windows")
	writeFile(t, filepath.Join(dir, CaseFile), "from: [../clusters/common, ../in]\nfacts: ../facts.json\n")
	return dir
}

func renderAll(t *testing.T, dir string) []desired.Rendered {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := c.Read(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, findings, err := c.Render(hosts)
	if err != nil {
		t.Fatalf("%v: %+v", err, findings.Sorted())
	}
	return list
}

func wantTree(t *testing.T, list []desired.Rendered) map[string][]byte {
	t.Helper()
	files, err := WantFiles(list)
	if err != nil {
		t.Fatal(err)
	}
	return Tree(files)
}

// TestAMirrorChangesFewFiles of 100 nodes, and the files are read back as rendered, in this form and in that of earlier versions.
func TestAMirrorChangesFewFiles(t *testing.T) {
	dir := hundred(t)
	list := renderAll(t, dir)
	before := wantTree(t, list)
	whole, err := Files(list, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "..", "in", "mirrors.yaml"), fmt.Sprintf(mirrorOfApps, "other.example.com"))
	changed := renderAll(t, dir)
	after := wantTree(t, changed)
	wholeAfter, err := Files(changed, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	differing := Differences(before, after)
	t.Logf("%d files, %d in the form of earlier versions; a mirror changes %d of them, %d in that form", len(before), len(whole), len(differing), len(Differences(Tree(whole), Tree(wholeAfter))))
	const most = 6 // the hosts file and the index of the 100 nodes, and of the host that has not joined; the findings, which name the mirror
	if len(differing) == 0 || len(differing) > most {
		t.Errorf("a mirror changes %d files: %q", len(differing), differing)
	}
	if d := Differences(before, wantTree(t, list)); len(d) > 0 {
		t.Errorf("the same nodes give other files: %q", d)
	}
	for form, tree := range map[string]map[string][]byte{"groups": before, "whole nodes": Tree(whole)} {
		nodes, err := PreviewedTree(tree)
		if err != nil {
			t.Fatal(err)
		}
		want := Reviewed(list)
		if len(nodes) != len(want) || HasGroups(tree) != (form == "groups") {
			t.Fatalf("%s: %d nodes of %d", form, len(nodes), len(want))
		}
		byName := map[string]int{}
		for i, n := range nodes {
			byName[n.Name] = i
		}
		for _, w := range want {
			got := nodes[byName[w.Name]]
			if d := cmp.Diff(w.Findings, got.Findings, cmpopts.IgnoreFields(bundle.Ref{}, "Digest")); d != "" {
				t.Fatalf("%s: findings of %s (-want +got):\n%s", form, w.Name, d)
			}
			wantManifest, err := w.Bundle.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			gotManifest, err := got.Bundle.Manifest()
			if err != nil || wantManifest.Digest != gotManifest.Digest || len(w.Bundle.Provenance) != len(got.Bundle.Provenance) {
				t.Fatalf("%s: %s: %v, %s and %s, %d and %d causes", form, w.Name, err, wantManifest.Digest, gotManifest.Digest, len(w.Bundle.Provenance), len(got.Bundle.Provenance))
			}
		}
	}
}

// TestGroupsAreWrittenAndReplaced: want/ is written in the new form over an earlier one, nothing of that stays, and edited files are refused.
func TestGroupsAreWrittenAndReplaced(t *testing.T) {
	dir := hundred(t)
	list := renderAll(t, dir)
	whole, err := Files(list, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]preview.File{whole, nil, nil} {
		if files == nil {
			if files, err = WantFiles(list); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteWant(t.Context(), dir, files); err != nil {
			t.Fatal(err)
		}
		tree, err := ReadWant(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := Differences(Tree(files), tree); len(d) > 0 {
			t.Fatalf("%q", d[:min(5, len(d))])
		}
	}
	tree := wantTree(t, list)
	if _, ok := tree["nodes_joined/nodes/win-007/LAYER.json"]; !ok || tree["10.0.151.1/MANIFEST.json"] == nil {
		t.Errorf("%q", slices.Sorted(maps.Keys(tree))[:20])
	}
	for _, name := range []string{"nodes_joined/LAYER.json", "nodes_joined/C/k/containerd/containerd_conf.toml", "nodes_joined/nodes/win-007/LAYER.json"} {
		edited := maps.Clone(tree)
		edited[name] = []byte(strings.Replace(string(edited[name]), "win", "won", 1) + " ")
		if name == "nodes_joined/LAYER.json" {
			edited[name] = []byte(strings.Replace(string(tree[name]), `"stage": "joined"`, `"stage": "join"`, 1))
		}
		if _, err := PreviewedTree(edited); err == nil || !strings.Contains(err.Error(), "edited") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
