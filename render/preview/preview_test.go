package preview_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
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

// TestPreviewsReadBackAsTheirBundles: a bundle that is read from its preview equals the rendered one.
func TestPreviewsReadBackAsTheirBundles(t *testing.T) {
	for _, name := range []string{"aws", "none-proxy", "none-mirrors", "vsphere", "none-trusted-ca", "none-payload"} {
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
		roots := preview.Roots(golden.Tree(files))
		for _, node := range list {
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
	whole := func() map[string][]byte {
		tree, err := golden.ReadTree(filepath.Join(cases(t), "none-proxy", "want", "win-a"))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	if _, err := preview.Read(whole()); err != nil {
		t.Fatal(err)
	}
	damage := map[string]func(map[string][]byte){
		"no manifest":          func(m map[string][]byte) { delete(m, preview.ManifestFile) },
		"a truncated manifest": func(m map[string][]byte) { m[preview.ManifestFile] = m[preview.ManifestFile][:500] },
		"a missing file":       func(m map[string][]byte) { delete(m, "C/k/kubelet.conf") },
		"an edited file":       func(m map[string][]byte) { m["C/k/kubelet.conf"] = append(m["C/k/kubelet.conf"], '\n') },
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
	dir := filepath.Join(cases(f), "none-proxy", "want", "win-a")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add([]byte(`{"schema":1}`), []byte("machine: []\nservices: []\n"), []byte("{}"))
	f.Add([]byte(`{"schema":1,"digest":"masked","layers":[]}`), read(preview.EnvironmentFile), []byte(`{"file C:\\k":[{"kind":"A"}]}`))
	f.Fuzz(func(t *testing.T, manifest, environment, provenance []byte) {
		b, err := preview.Read(map[string][]byte{preview.ManifestFile: manifest, preview.EnvironmentFile: environment, preview.ProvenanceFile: provenance})
		if err == nil {
			bundle.Diff(b, bundle.Bundle{})
		}
	})
}
