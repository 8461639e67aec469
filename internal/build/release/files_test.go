package release

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"wmco/payload"
	"wmco/payload/store"
)

// released writes the files of a release for two platforms.
func released(t *testing.T) (string, Files) {
	t.Helper()
	i := example(t)
	layout, digest := write(t, i)
	f := Files{Image: i, Layout: layout, Digest: digest.String(), Downloads: "https://example.com/v1.0.0/"}
	f.Programs = []Program{compile(t, "linux", "amd64"), compile(t, "windows", "arm64")}
	dir := filepath.Join(t.TempDir(), "dist")
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir, f
}

func TestFilesOfARelease(t *testing.T) {
	dir, f := released(t)
	names, err := namesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"windows-machine-config-operator-v1.0.0-image.cdx.json", "windows-machine-config-operator-v1.0.0-image.digest.txt",
		"windows-machine-config-operator-v1.0.0-image.tar", "wmco-v1.0.0-krew.yaml", "wmco-v1.0.0-linux-amd64.cdx.json",
		"wmco-v1.0.0-linux-amd64.tar.gz", "wmco-v1.0.0-notes.md", "wmco-v1.0.0-payload.json", "wmco-v1.0.0-payload.tar", "wmco-v1.0.0-windows-arm64.cdx.json",
		"wmco-v1.0.0-windows-arm64.zip",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if notes, err := os.ReadFile(filepath.Join(dir, "wmco-v1.0.0-notes.md")); err != nil || !strings.Contains(string(notes), "pullSecret: MirrorsOnly") {
		t.Errorf("the notes of the first release do not name the pull secret: %v", err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := f.Write(again); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if a, b := sum(t, dir, name), sum(t, again, name); a != b {
			t.Errorf("%s differs the second time", name)
		}
	}
}

func sum(t *testing.T, dir, name string) string {
	t.Helper()
	s, err := sumOf(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTheFileWithThePayload is a folder of executables as make payload writes it.
func TestTheFileWithThePayload(t *testing.T) {
	dir, f := released(t)
	to := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", to, "-xf", filepath.Join(dir, "wmco-v1.0.0-payload.tar")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := store.Open(filepath.Join(to, "payload"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got.Entries() {
		if a, b := sum(t, filepath.Join(to, "payload"), e.File()), sum(t, f.Image.Payload, e.File()); a != b {
			t.Errorf("%s is another one", e.File())
		}
	}
	names, err := namesIn(filepath.Join(to, "payload"))
	if err != nil || len(names) != len(got.Entries())+1 {
		t.Errorf("%q, %v", names, err)
	}
}

func TestArchives(t *testing.T) {
	dir, _ := released(t)
	file, err := os.Open(filepath.Join(dir, "wmco-v1.0.0-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for in := tar.NewReader(plain); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeDir {
			have[header.Name] = header.Linkname
		}
	}
	if want := map[string]string{"LICENSE": "", "wmco": "", "kubectl-windows": "wmco", "oc-windows": "wmco", "kubectl_complete-windows": "wmco"}; !maps.Equal(have, want) {
		t.Errorf("%v", have)
	}
	zipped, err := zip.OpenReader(filepath.Join(dir, "wmco-v1.0.0-windows-arm64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	var names []string
	for _, f := range zipped.File {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"LICENSE", "wmco.exe"}) {
		t.Errorf("%q", names)
	}
}

func TestKrewManifest(t *testing.T) {
	dir, _ := released(t)
	data, err := os.ReadFile(filepath.Join(dir, "wmco-v1.0.0-krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		t.Fatal(err)
	}
	if p.Metadata.Name != "windows" || p.Spec.Version != "v1.0.0" || len(p.Spec.Platforms) != 2 {
		t.Fatalf("%+v", p)
	}
	windows := p.Spec.Platforms[1]
	if windows.URI != "https://example.com/v1.0.0/wmco-v1.0.0-windows-arm64.zip" || windows.Bin != "wmco.exe" ||
		windows.SHA256 != sum(t, dir, "wmco-v1.0.0-windows-arm64.zip") || !maps.Equal(windows.Selector.MatchLabels, map[string]string{"os": "windows", "arch": "arm64"}) {
		t.Errorf("%+v", windows)
	}
}

func TestSums(t *testing.T) {
	dir, _ := released(t)
	var table strings.Builder
	if err := Sums(dir, &table); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", SumsFile)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 11 {
		t.Errorf("%v: %s", err, out)
	}
	if n := strings.Count(table.String(), "\n"); n != 12 {
		t.Errorf("%d lines:\n%s", n, table.String())
	}
}

func TestNotes(t *testing.T) {
	now, err := readList(filepath.Join(examplePayload, store.ListFile))
	if err != nil {
		t.Fatal(err)
	}
	before := store.List{Schema: store.Schema, Executables: slices.Clone(now.Executables)}
	set := func(name string, change func(*store.Entry)) {
		for i := range before.Executables {
			if e := &before.Executables[i]; e.Name == name {
				e.Raw.Digest = "sha256:another"
				change(e)
			}
		}
	}
	set("kubelet-1.36", func(e *store.Entry) { e.Version = "v1.36.1" })
	set("kube-proxy-1.36", func(e *store.Entry) { e.Go = "go1.25.9" })
	set("csi-proxy", func(*store.Entry) {})
	set("wmco-node", func(e *store.Entry) { e.Name = "wmco-agent" })
	got := Notes("v1.0.0", before, store.List{Executables: now.Executables})
	for _, want := range []string{
		"# wmco v1.0.0\n", "| kubelet-1.36 | v1.36.1 | " + payload.Find("kubelet-1.36").Version + " | version |\n", "| kube-proxy-1.36 | " + payload.Find("kube-proxy-1.36").Version + " | " + payload.Find("kube-proxy-1.36").Version + " | built with go1.26.0, before with go1.25.9 |\n",
		"| csi-proxy | v1.3.0 | v1.3.0 | a module that it links |\n", "| wmco-agent | v1.0.0 | removed | removed |\n", "| wmco-node | - | v1.0.0 | new |\n",
		"\nUnchanged: acr-credential-provider " + payload.AzureVersion + ", azure-cloud-node-manager " + payload.AzureVersion + ", containerd v2.4.2, ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}
