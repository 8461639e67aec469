package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/render"
)

var update = flag.Bool("update", false, "rewrite example.json")

// read returns what wmco reads from folders below golden, and the node win-a.
func read(t *testing.T, more ...string) (render.Cluster, render.Node) {
	t.Helper()
	golden := filepath.Join("..", "..", "..", "golden")
	var from []string
	for _, path := range append([]string{"clusters/common", "clusters/none"}, more...) {
		from = append(from, filepath.Join(golden, filepath.FromSlash(path)))
	}
	reader, _, err := gather.OpenSources(from, nil, gather.Kubeconfig{})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := gather.FactsFile(filepath.Join(golden, "facts", "none.json"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := gather.Gather(t.Context(), reader, gather.Options{Facts: facts})
	if err != nil || all.Findings.Refused() {
		t.Fatal(err, all.Findings)
	}
	for _, n := range all.Nodes {
		if n.Name == "win-a" {
			return all.Cluster, n
		}
	}
	t.Fatal("there is no node win-a")
	return render.Cluster{}, render.Node{}
}

// fields returns the fields of a cluster as JSON.
func fields(t *testing.T, c render.Cluster) map[string]json.RawMessage {
	t.Helper()
	data, err := json.Marshal(withoutSecrets(c))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// changes returns the fields that folders add to the example or change in it.
func changes(t *testing.T, before render.Cluster, title string, more ...string) change {
	t.Helper()
	after, _ := read(t, more...)
	was, is := fields(t, before), fields(t, after)
	maps.DeleteFunc(is, func(name string, value json.RawMessage) bool { return bytes.Equal(value, was[name]) })
	data, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	return change{title, data}
}

// TestTheExampleIsWhatWmcoReads: example.json has the inputs that wmco reads from the example cluster and from two changes of it.
func TestTheExampleIsWhatWmcoReads(t *testing.T) {
	cluster, node := read(t)
	data, err := json.MarshalIndent(example{withoutSecrets(cluster), node, []change{
		changes(t, cluster, "Mirror sets are added", "clusters/traits/mirrors"),
		changes(t, cluster, "A setting of kubelets is changed", "transitions/kubelet-override/settings.yaml"),
	}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	if bytes.Equal(data, exampleJSON) {
		return
	}
	if *update {
		if err := os.WriteFile("example.json", data, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Fatal("example.json is rewritten; run the test again without -update")
	}
	t.Errorf("example.json is old: run the test with -update (-has +want):\n%s", cmp.Diff(string(exampleJSON), string(data)))
}

// TestTheExampleRendersAsTheCluster: but for its secrets, the bundle is that of the inputs that the example was made from.
func TestTheExampleRendersAsTheCluster(t *testing.T) {
	cluster, node := read(t)
	e, err := readExample(exampleJSON)
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderNode(e.Cluster.clusterInputs(), e.Node)
	if err != nil {
		t.Fatal(err)
	}
	want, err := renderNode(withoutSecrets(cluster).clusterInputs(), node)
	if err != nil {
		t.Fatal(err)
	}
	if differs := bundle.Diff(want.Bundle, got.Bundle); len(differs) > 0 {
		t.Errorf("another bundle than that of the inputs: %v", differs)
	}
}

// TestShow: the node has its files, each change has its impact, and no secret of the example cluster is shown.
func TestShow(t *testing.T) {
	var out strings.Builder
	if err := showChange(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"Node win-a of the example cluster", "# " + shownFile, "Mirror sets are added:", "no restart", "hosts.toml", "A setting of kubelets is changed:", "maxPods",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("nothing of %q in:\n%s", text, out.String())
		}
	}
	if strings.Contains(out.String(), "Findings") && strings.Contains(out.String(), "error") {
		t.Errorf("the example has errors:\n%s", out.String())
	}
}
