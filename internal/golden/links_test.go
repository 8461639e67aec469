package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/render/preview"
)

// secretText is in a file outside of the golden folder, such as a key of the account that checks a pull request.
const secretText = "apiVersion: hunter2"

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLinksOfAGoldenFolderAreNotFollowed: whoever can commit a link in a golden folder has neither a file outside of it read nor one written,
// wherever the link is.
func TestLinksOfAGoldenFolderAreNotFollowed(t *testing.T) {
	preview := []preview.File{
		{Path: "win-a/MANIFEST.json", Data: []byte("{}")},
		{Path: "win-a/C/k/bootstrap-kubeconfig", Data: []byte("masked"), Secret: true},
		{Path: "win-a/C/k/cni/config/cni.conf", Data: []byte("new")},
	}
	for name, link := range map[string]struct{ at, to string }{
		"the folder want":           {"want", "folder"},
		"the folder of a node":      {"want/win-a", "folder"},
		"a folder of a node":        {"want/win-a/C/k/cni", "folder"},
		"a file with a secret":      {"want/win-a/C/k/bootstrap-kubeconfig", "file"},
		"a file":                    {"want/win-a/MANIFEST.json", "file"},
		"a link to nothing":         {"want/win-a/C/k/new", "new"},
		"a file of another folder":  {"want/win-a/C/k/cni/config", "folder/config"},
		"a link inside the folder":  {"want/win-a/C/k/cni/config/cni.conf", "../golden/inside"},
		"a folder inside of golden": {"want/win-a/C", "../golden/insides"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir, outside := filepath.Join(base, "golden"), filepath.Join(base, "outside")
			writeFile(t, filepath.Join(outside, "file"), secretText)
			writeFile(t, filepath.Join(outside, "folder", "config", "cni.conf"), secretText)
			writeFile(t, filepath.Join(dir, "inside"), secretText)
			writeFile(t, filepath.Join(dir, "insides", "k"), secretText)
			if link.at != "want/win-a/MANIFEST.json" && link.at != "want" && link.at != "want/win-a" {
				writeFile(t, filepath.Join(dir, "want", "win-a", "MANIFEST.json"), "{}")
			}
			at := filepath.Join(dir, filepath.FromSlash(link.at))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(outside, filepath.FromSlash(link.to)), at); err != nil {
				t.Skip("this system has no symbolic links:", err)
			}
			before := filesOf(t, base)
			if tree, err := ReadWant(dir); err == nil || !strings.Contains(err.Error(), "is a link") {
				t.Errorf("it is read: %q, %v", tree, err)
			}
			if nodes, err := PreviewedWant(dir); err == nil {
				t.Errorf("nodes are read: %v", nodes)
			}
			if nodes, err := Previewed(WantDir(dir)); err == nil && len(nodes) > 0 {
				t.Errorf("nodes are read: %v", nodes)
			}
			if err := WriteWant(t.Context(), dir, preview); err == nil || !strings.Contains(err.Error(), "is a link") {
				t.Errorf("it is written to: %v", err)
			}
			if diff := cmp.Diff(before, filesOf(t, base)); diff != "" {
				t.Errorf("files change (-want +got):\n%s", diff)
			}
		})
	}
}

// filesOf returns the files below a folder with their texts, without following a link.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		files[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTheCaseIsInItsFolder: errors about golden.yaml quote it, so it is no link to a file elsewhere.
func TestTheCaseIsInItsFolder(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeFile(t, outside, "hunter2: a")
	if err := os.Symlink(outside, filepath.Join(dir, CaseFile)); err != nil {
		t.Skip("this system has no symbolic links:", err)
	}
	if _, err := Load(dir); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestAFolderOfManifestsMayHaveLinks, as a mounted ConfigMap has: it is no preview.
func TestAFolderOfManifestsMayHaveLinks(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "..data", "a.yaml"), "kind: Proxy")
	if err := os.Symlink(filepath.Join("..data", "a.yaml"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Skip("this system has no symbolic links:", err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "a.yaml"), filepath.Join(dir, "missing")} {
		if nodes, err := Previewed(path); err != nil || len(nodes) > 0 {
			t.Errorf("%s: %v, %v", path, nodes, err)
		}
	}
}

// TestWriteReplacesAnEarlierPreview and nothing else, also one that was interrupted.
func TestWriteReplacesAnEarlierPreview(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first := []preview.File{{Path: "MANIFEST.json", Data: []byte("1")}, {Path: "C/k/old/file", Data: []byte("old")}, {Path: "C/k/secret", Data: []byte("s"), Secret: true}}
	if err := Write(t.Context(), dir, first); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "C", "k", ".wmco-1"), "interrupted")
	if err := Write(t.Context(), dir, []preview.File{{Path: "MANIFEST.json", Data: []byte("2")}, {Path: "C/k/secret", Data: []byte("s"), Secret: true}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{filepath.Join(dir, "MANIFEST.json"): "2", filepath.Join(dir, "C", "k", "secret"): "s"}
	if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "C", "k", "old")); err == nil {
		t.Error("an empty folder is left")
	}
	writeFile(t, filepath.Join(dir, "mine.txt"), "mine")
	if err := Write(t.Context(), dir, first); err == nil || !strings.Contains(err.Error(), `holds "mine.txt"`) {
		t.Errorf("%v", err)
	}
}
