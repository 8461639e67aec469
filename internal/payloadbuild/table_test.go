package payloadbuild

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/payload"
)

const root = "../.."

func testOptions(t *testing.T) Options {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Root: dir, Out: t.TempDir(), Version: "v0.0.0-test", Progress: io.Discard}
}

// goMod is what `go mod edit -json` tells of a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		New struct{ Path, Version string }
	}
	Godebug []struct{ Key, Value string }
	Tool    []struct{ Path string }
}

func readMod(t *testing.T, o Options, path string) goMod {
	t.Helper()
	data, err := o.output(t.Context(), o.Root, "mod", "edit", "-json", path)
	if err != nil {
		t.Fatal(err)
	}
	var m goMod
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m goMod) debug() []string {
	var list []string
	for _, d := range m.Godebug {
		list = append(list, d.Key+"="+d.Value)
	}
	return list
}

// pins tells whether the module uses that version of another.
func (m goMod) pins(path, version string) bool {
	for _, r := range m.Require {
		if r.Path == path && r.Version == version {
			return true
		}
	}
	return false
}

// TestModulesSayWhatTheTableSays: a version is in a go.mod and in the table, and nobody may change one of them alone.
func TestModulesSayWhatTheTableSays(t *testing.T) {
	o := testOptions(t)
	folders, err := filepath.Glob(filepath.Join(root, "payload", "*", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := len(payload.Components()) - 1; len(folders) != want {
		t.Errorf("%d modules below payload/, the table has %d", len(folders), want)
	}
	for _, c := range payload.Components() {
		if c.Name == payload.Ours {
			continue
		}
		dir := filepath.Join(o.Root, "payload", c.Name)
		if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 2 {
			t.Errorf("%s: %v %v, want go.mod and go.sum", dir, files, err)
		}
		m := readMod(t, o, filepath.Join(dir, "go.mod"))
		var tools, packages []string
		for _, x := range m.Tool {
			tools = append(tools, x.Path)
		}
		for _, e := range c.Executables {
			e = payload.Find(e.Name)
			packages = append(packages, e.Package)
			if !m.pins(e.Module, e.Version) {
				t.Errorf("%s: the go.mod does not pin %s %s", c.Name, e.Module, e.Version)
			}
		}
		slices.Sort(tools)
		slices.Sort(packages)
		if diff := cmp.Diff(packages, tools); diff != "" {
			t.Errorf("%s: tools (-table +go.mod):\n%s", c.Name, diff)
		}
		if diff := cmp.Diff(c.Debug, m.debug()); diff != "" {
			t.Errorf("%s: GODEBUG (-table +go.mod):\n%s", c.Name, diff)
		}
	}
}

// TestKubernetesLibrariesAreOfOneRelease: the libraries that Kubernetes keeps in its own tree are those of its release.
func TestKubernetesLibrariesAreOfOneRelease(t *testing.T) {
	o := testOptions(t)
	m := readMod(t, o, filepath.Join(o.Root, "payload", "kubernetes", "go.mod"))
	if len(m.Replace) < 30 {
		t.Fatalf("%d replacements", len(m.Replace))
	}
	for _, r := range m.Replace {
		if r.New.Version != payload.StagingVersion {
			t.Errorf("%s is %s, not %s", r.New.Path, r.New.Version, payload.StagingVersion)
		}
	}
	if strings.Replace(payload.KubernetesVersion, "v1.", "v0.", 1) != payload.StagingVersion {
		t.Errorf("Kubernetes %s has no libraries %s", payload.KubernetesVersion, payload.StagingVersion)
	}
}

// TestGODEBUGIsUpstreams compares the table with each module's own go.mod: its godebug lines, and what its go line stands
// for where that is older than ours.
func TestGODEBUGIsUpstreams(t *testing.T) {
	o := testOptions(t)
	for _, c := range payload.Components() {
		if c.Name == payload.Ours {
			continue
		}
		dir := filepath.Join(o.Root, "payload", c.Name)
		path, err := o.output(t.Context(), dir, "list", "-mod=readonly", "-m", "-f", "{{.GoMod}}", c.Module)
		if err != nil {
			t.Skipf("the module proxy is not there: %v", err)
		}
		upstream := readMod(t, o, strings.TrimSpace(string(path)))
		want := upstream.debug()
		if minor := minorOf(upstream.Go); !slices.ContainsFunc(want, func(d string) bool { return strings.HasPrefix(d, "default=") }) && minor != minorOf(readMod(t, o, filepath.Join(dir, "go.mod")).Go) {
			want = append(want, "default=go"+minor)
		}
		// default=go1.24.6 and default=go1.24 are one, and the default of our own Go need not be written.
		for i, d := range want {
			if v, ok := strings.CutPrefix(d, "default=go"); ok {
				want[i] = "default=go" + minorOf(v)
			}
		}
		want = slices.DeleteFunc(want, func(d string) bool { return d == "default=go1.26" })
		slices.Sort(want)
		if diff := cmp.Diff(append([]string{}, want...), append([]string{}, c.Debug...)); diff != "" {
			t.Errorf("%s (-upstream +table):\n%s", c.Name, diff)
		}
	}
}

// minorOf is 1.24 of 1.24.6.
func minorOf(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func TestNamesAndPathsAreUsedOnce(t *testing.T) {
	seen := map[string]string{}
	for _, e := range payload.Table() {
		for _, key := range []string{e.Name, strings.ToLower(e.Path), e.Package} {
			if other := seen[key]; other != "" && other != e.Name {
				t.Errorf("%s and %s are both %s", e.Name, other, key)
			}
			seen[key] = e.Name
		}
		if e.Component == "" || e.Module == "" || e.Package == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, c := range payload.Components() {
		// A component may be called as its only executable is.
		if other, ok := seen[c.Name]; ok && payload.Find(other).Component != c.Name {
			t.Errorf("%s is a component, and an executable of another", c.Name)
		}
		if _, err := os.Stat(filepath.Join(root, "payload", c.Name)); err != nil && c.Name != payload.Ours {
			t.Error(err)
		}
	}
}
