package payloadbuild

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/payload"
)

const root = "../../.."

func testOptions(t *testing.T) Options {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Root: dir, Out: t.TempDir(), Version: "v0.0.0-test", Progress: io.Discard}
}

func readMod(t *testing.T, o Options, path string) goMod {
	t.Helper()
	m, err := o.readMod(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// version is the required version of another module, empty if there is none.
func (m goMod) version(path string) string {
	for _, r := range m.Require {
		if r.Path == path {
			return r.Version
		}
	}
	return ""
}

// TestModulesMatchTheTable checks that every version in the table equals the one in the go.mod.
func TestModulesMatchTheTable(t *testing.T) {
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
		if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 2 && !c.IsOurs() {
			t.Errorf("%s: %v %v, want go.mod and go.sum", dir, files, err)
		}
		m := readMod(t, o, filepath.Join(dir, "go.mod"))
		var tools, packages []string
		for _, x := range m.Tool {
			tools = append(tools, x.Path)
		}
		for _, e := range c.Executables {
			e = payload.Find(e.Name)
			if !c.IsOurs() {
				packages = append(packages, e.Package)
			}
			if m.version(e.Module) != e.Version {
				t.Errorf("%s: the go.mod does not pin %s %s", c.Name, e.Module, e.Version)
			}
		}
		slices.Sort(tools)
		slices.Sort(packages)
		if diff := cmp.Diff(packages, tools); diff != "" {
			t.Errorf("%s: tools (-table +go.mod):\n%s", c.Name, diff)
		}
		if diff := cmp.Diff(c.Debug, m.debugSettings()); diff != "" {
			t.Errorf("%s: GODEBUG (-table +go.mod):\n%s", c.Name, diff)
		}
	}
}

// TestKubernetesLibrariesAreOfOneMinorVersion checks that the staging libraries have the minor version of Kubernetes. Some are of another
// patch release, where the module proxy does not serve that one.
func TestKubernetesLibrariesAreOfOneMinorVersion(t *testing.T) {
	o := testOptions(t)
	for _, release := range payload.Releases() {
		m := readMod(t, o, filepath.Join(o.Root, "payload", "kubernetes-"+release.Minor, "go.mod"))
		if len(m.Replace) < 29 {
			t.Errorf("%s: %d replacements", release.Minor, len(m.Replace))
		}
		want := strings.Replace("v"+release.Minor, "v1.", "v0.", 1) + "."
		for _, r := range m.Replace {
			if !strings.HasPrefix(r.New.Version, want) {
				t.Errorf("%s: %s is %s", release.Minor, r.New.Path, r.New.Version)
			}
		}
	}
}

// TestConsumersHaveTheShippedRelease compares the modules that check our files in tests with payload/table.go. Kubernetes may
// be another patch release, as the module proxy does not serve all of them. containerd must be equal.
func TestConsumersHaveTheShippedRelease(t *testing.T) {
	o := testOptions(t)
	tested, _ := payload.ReleaseOf(payload.TestedKubernetes)
	for _, dir := range []string{"tools/kubernetes", "internal/verify/consumers"} {
		version := readMod(t, o, filepath.Join(o.Root, dir, "go.mod")).version("k8s.io/kubernetes")
		if !strings.HasPrefix(version, "v"+tested.Minor+".") {
			t.Errorf("%s has Kubernetes %q, the tests are for %s", dir, version, tested.Version)
		}
	}
	for _, dir := range []string{"tools/containerd", "internal/verify/resolvers"} {
		version := readMod(t, o, filepath.Join(o.Root, dir, "go.mod")).version("github.com/containerd/containerd/v2")
		if version != payload.ContainerdVersion {
			t.Errorf("%s has containerd %q, we ship %s", dir, version, payload.ContainerdVersion)
		}
	}
}

// TestModulesThatCompileKubernetesHaveOurVersions: what they share with this module is then compiled once. Those without a
// version are replaced, go-winio is not compiled here, and the other two are as the kubelet needs them.
func TestModulesThatCompileKubernetesHaveOurVersions(t *testing.T) {
	o := testOptions(t)
	other := []string{"github.com/Microsoft/go-winio", "github.com/containerd/containerd/api", "github.com/containerd/ttrpc"}
	ours := readMod(t, o, filepath.Join(o.Root, "go.mod"))
	for _, dir := range []string{"tools/kubernetes", "tools/kubectl", "internal/verify/consumers"} {
		for _, r := range readMod(t, o, filepath.Join(o.Root, dir, "go.mod")).Require {
			want := ours.version(r.Path)
			if want != "" && r.Version != want && r.Version != "v0.0.0" && !slices.Contains(other, r.Path) {
				t.Errorf("%s has %s %s, go.mod has %s", dir, r.Path, r.Version, want)
			}
		}
	}
}

func TestGODEBUGThatMustBeRepeated(t *testing.T) {
	type setting = struct{ Key, Value string }
	for name, tt := range map[string]struct {
		upstream goMod
		want     []string
	}{
		"the same release":           {goMod{Go: "1.26.6"}, nil},
		"an older release":           {goMod{Go: "1.23.0"}, []string{"default=go1.23"}},
		"an older default":           {goMod{Go: "1.26.0", Godebug: []setting{{"default", "go1.24.6"}}}, []string{"default=go1.24"}},
		"our default":                {goMod{Go: "1.24.0", Godebug: []setting{{"default", "go1.26"}}}, nil},
		"a setting and no release":   {goMod{Go: "1.26.0", Godebug: []setting{{"winsymlink", "0"}}}, []string{"winsymlink=0"}},
		"a setting and a go release": {goMod{Go: "1.22", Godebug: []setting{{"winsymlink", "0"}}}, []string{"default=go1.22", "winsymlink=0"}},
	} {
		if diff := cmp.Diff(tt.want, inheritedDebug(tt.upstream, goMod{Go: "1.26.0"}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamesAndPathsAreUsedOnce(t *testing.T) {
	seen := map[string]string{}
	for _, e := range payload.Table() {
		for _, key := range []string{e.Name, strings.ToLower(e.Path), e.Package} {
			if other := seen[key]; other != "" && payload.Find(other).Program != e.Program {
				t.Errorf("%s and %s are both %s", e.Name, other, key)
			}
			seen[key] = e.Name
		}
		if e.Component == "" || e.Module == "" || e.Package == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, c := range payload.Components() {
		// A component may have the name of its only executable.
		if other, ok := seen[c.Name]; ok && payload.Find(other).Component != c.Name {
			t.Errorf("%s is a component, and an executable of another", c.Name)
		}
		if _, err := os.Stat(filepath.Join(root, "payload", c.Name)); err != nil && c.Name != payload.Ours {
			t.Error(err)
		}
	}
}
