package preview_test

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
	"wmco/render/preview"
)

func cases(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "golden", "cases"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nodeTree returns the preview of a node of a case.
func nodeTree(t testing.TB, name, node string) map[string][]byte {
	t.Helper()
	return preview.Roots(golden.Tree(renderCase(t, name).files))[node]
}

// rendered is what a case renders.
type rendered struct {
	nodes []desired.Rendered
	files []preview.File
}

func renderCase(t testing.TB, name string) rendered {
	t.Helper()
	dir := filepath.Join(cases(t), name)
	c, err := golden.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := c.Read(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := c.Render(hosts)
	if err != nil {
		t.Fatal(err)
	}
	files, err := golden.Files(list, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rendered{nodes: list, files: files}
}

// TestPreviewsReadBackAsTheirBundles: a bundle that is read from its preview equals the rendered one.
func TestPreviewsReadBackAsTheirBundles(t *testing.T) {
	for _, name := range []string{"aws", "none-proxy", "none-mirrors", "vsphere", "none-trusted-ca", "none-payload"} {
		r := renderCase(t, name)
		roots := preview.Roots(golden.Tree(r.files))
		for _, node := range r.nodes {
			b, err := preview.Read(roots[node.Node.ID()])
			if err != nil {
				t.Fatal(err)
			}
			if changes := bundle.Diff(b, node.Bundle.Bundle); len(changes) > 0 {
				t.Errorf("%s %s: %+v", name, node.Node.ID(), changes)
			}
			if diff := cmp.Diff(len(node.Bundle.Provenance), len(b.Provenance)); diff != "" {
				t.Errorf("%s provenance (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestDamagedPreviewsAreRefused(t *testing.T) {
	rendered := nodeTree(t, "none-proxy", "win-a")
	whole := func() map[string][]byte { return maps.Clone(rendered) }
	if _, err := preview.Read(whole()); err != nil {
		t.Fatal(err)
	}
	damage := map[string]func(map[string][]byte){
		"no manifest":          func(m map[string][]byte) { delete(m, preview.ManifestFile) },
		"a truncated manifest": func(m map[string][]byte) { m[preview.ManifestFile] = m[preview.ManifestFile][:500] },
		"a missing file":       func(m map[string][]byte) { delete(m, "C/k/kubelet.conf") },
		"an edited file":       func(m map[string][]byte) { m["C/k/kubelet.conf"] = append(bytes.Clone(m["C/k/kubelet.conf"]), '\n') },
		"a file with CRLF": func(m map[string][]byte) {
			m["C/k/kubelet.conf"] = []byte(strings.ReplaceAll(string(m["C/k/kubelet.conf"]), "\n", "\r\n"))
		},
		"an unknown environment": func(m map[string][]byte) { m[preview.EnvironmentFile] = []byte("machines: []\n") },
		"no provenance":          func(m map[string][]byte) { m[preview.ProvenanceFile] = nil },
	}
	for name, spoil := range damage {
		tree := whole()
		spoil(tree)
		if _, err := preview.Read(tree); !errors.Is(err, preview.ErrNotPreview) {
			t.Errorf("%s: error %v, want ErrNotPreview", name, err)
		}
	}
}

func TestPathsOfTheTree(t *testing.T) {
	paths := []string{preview.TreePath(`C:\k\a b.conf`), preview.TreePath(`D:\x`)}
	if !slices.Equal(paths, []string{"C/k/a b.conf", "D/x"}) {
		t.Errorf("%q", paths)
	}
}

func FuzzRead(f *testing.F) {
	tree := nodeTree(f, "none-proxy", "win-a")
	f.Add([]byte(`{"schema":1}`), []byte("machine: []\nservices: []\n"), []byte("{}"))
	f.Add([]byte(`{"schema":1,"digest":"masked","layers":[]}`), tree[preview.EnvironmentFile], []byte(`{"file C:\\k":[{"kind":"A"}]}`))
	f.Fuzz(func(t *testing.T, manifest, environment, provenance []byte) {
		b, err := preview.Read(map[string][]byte{preview.ManifestFile: manifest, preview.EnvironmentFile: environment, preview.ProvenanceFile: provenance})
		if err == nil {
			bundle.Diff(b, bundle.Bundle{})
		}
	})
}
