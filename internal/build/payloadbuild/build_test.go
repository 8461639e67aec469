package payloadbuild

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"wmco/payload"
	"wmco/payload/store"
)

// small is quick to build.
const small = payload.HostLocal

// buildSmall builds one executable for Windows, where make cross sets WMCO_CROSS. It skips the test if its modules cannot be downloaded.
func buildSmall(t *testing.T) Options {
	t.Helper()
	if os.Getenv("WMCO_CROSS") == "" {
		t.Skip("it compiles for Windows: make cross runs it")
	}
	o := testOptions(t)
	o.Only = []string{small}
	err := Build(t.Context(), o)
	if errors.Is(err, ErrNotServed) {
		t.Skip("skipped:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func smallRecipe(t *testing.T, o Options) recipe {
	t.Helper()
	all, err := o.readRecipes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := o.chooseRecipes(all)
	if err != nil || len(chosen) != 1 {
		t.Fatalf("%v, %v", chosen, err)
	}
	return chosen[0]
}

func TestBuildMatchesTheTable(t *testing.T) {
	o := buildSmall(t)
	s, err := store.Open(o.payloadDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries := s.Entries()
	if len(entries) != 1 || entries[0].Name != small || entries[0].Version != payload.CNIVersion {
		t.Fatalf("%+v", entries)
	}

	t.Run("nothing is left to do", func(t *testing.T) {
		var told bytes.Buffer
		again := o
		again.Progress = &told
		if err := Build(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(told.String(), "building") {
			t.Error(told.String())
		}
	})
	t.Run("a changed result is built again, the same", func(t *testing.T) {
		path := filepath.Join(o.payloadDir(), store.FileOf(small))
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(path, bad, modeFile); err != nil {
			t.Fatal(err)
		}
		if err := Build(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, good) {
			t.Errorf("other bytes: %v", err)
		}
	})
	t.Run("a second build in other folders has the same bytes", func(t *testing.T) {
		other := o
		other.Out = t.TempDir()
		if err := Build(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		second, err := other.verifyList(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := o.compareBuilds(entries, second); err != nil {
			t.Error(err)
		}
		second[0].Raw.Size++
		if err := o.compareBuilds(entries, second); !errors.Is(err, errDiffers) {
			t.Errorf("other bytes: %v", err)
		}
	})
	t.Run("foreign files go", func(t *testing.T) {
		for _, dir := range []string{o.payloadDir(), o.sbomDir()} {
			if err := os.WriteFile(filepath.Join(dir, "foreign"), nil, modeFile); err != nil {
				t.Fatal(err)
			}
		}
		if err := Build(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{o.payloadDir(), o.sbomDir()} {
			if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
				t.Errorf("%v, %v", files, err)
			}
		}
	})
	t.Run("its bill of materials", func(t *testing.T) { checkBill(t, o) })
	t.Run("what is missing is told", func(t *testing.T) {
		more := o
		more.Only = []string{"cni"}
		if _, err := more.verifyList(t.Context()); err == nil || !strings.Contains(err.Error(), "win-bridge is not built: make payload") {
			t.Error(err)
		}
	})
}

func checkBill(t *testing.T, o Options) {
	t.Helper()
	for _, name := range []string{billOf(small), wholeBill} {
		data, err := os.ReadFile(filepath.Join(o.sbomDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		var bom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		if bom.SpecVersion != cyclonedx.SpecVersion1_6 || strings.Contains(string(data), "timestamp") {
			t.Errorf("%s: %s", name, bom.SpecVersion)
		}
		var urls []string
		for _, c := range *bom.Components {
			urls = append(urls, c.PackageURL)
		}
		for _, want := range []string{"pkg:golang/github.com/containernetworking/cni@v1.3.1", "pkg:golang/" + payload.Find(small).Module + "@" + payload.CNIVersion} {
			if !slices.Contains(urls, want) {
				t.Errorf("%s lacks %s: %s", name, want, urls)
			}
		}
		if !slices.ContainsFunc(urls, func(u string) bool { return strings.HasPrefix(u, "pkg:golang/std@1.") }) {
			t.Errorf("%s lacks the standard library", name)
		}
	}
}

// TestBadModulesAreRefused builds in copies of a module.
func TestBadModulesAreRefused(t *testing.T) {
	o := buildSmall(t)
	for name, tt := range map[string]struct {
		file, old, new, want string
	}{
		"a changed digest in go.sum": {"go.sum", "github.com/containernetworking/cni v1.3.1 h1:", "github.com/containernetworking/cni v1.3.1 h1:A", "verifying"},
		"a line less in go.sum":      {"go.sum", "github.com/containernetworking/cni v1.3.1 h1:", "github.com/containernetworking/cni v0.0.1 h1:", "missing go.sum entry"},
		"another version in go.mod":  {"go.mod", "github.com/containernetworking/plugins " + payload.CNIVersion, "github.com/containernetworking/plugins v1.9.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := smallRecipe(t, o)
			dir := t.TempDir()
			for _, file := range []string{"go.mod", "go.sum"} {
				data, err := os.ReadFile(filepath.Join(r.dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if file == tt.file {
					changed := bytes.Replace(data, []byte(tt.old), []byte(tt.new), 1)
					if bytes.Equal(changed, data) {
						t.Fatalf("%s has no %q", file, tt.old)
					}
					data = changed
				}
				if err := os.WriteFile(filepath.Join(dir, file), data, modeFile); err != nil {
					t.Fatal(err)
				}
			}
			r.dir = dir
			err := o.buildOne(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			t.Log(err)
		})
	}
	for want, change := range map[string]func(*recipe){
		"GODEBUG":       func(r *recipe) { r.component.Debug = []string{"winsymlink=0"} },
		"version":       func(r *recipe) { r.Version = "v1.9.0" },
		"module":        func(r *recipe) { r.Module = "github.com/containernetworking/cni" },
		"release of Go": func(r *recipe) { r.release = "go1.25.0" },
	} {
		r := smallRecipe(t, o)
		change(&r)
		if err := o.buildOne(t.Context(), r); err == nil || !strings.Contains(err.Error(), "its "+want+" is") {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// TestRecipesChange checks that the key depends on all inputs of a build.
func TestRecipesChange(t *testing.T) {
	o := testOptions(t)
	o.Only = []string{small}
	good := smallRecipe(t, o)
	for name, change := range map[string]func(*recipe){
		"the release of Go": func(r *recipe) { r.release = "go1.26.9" },
		"a flag":            func(r *recipe) { r.component.Variables = append(r.component.Variables, "main.x=y") },
		"the package":       func(r *recipe) { r.Package += "2" },
		"go.mod and go.sum": func(r *recipe) { r.dir = filepath.Join(o.Root, "payload", "ecr") },
	} {
		r := good
		change(&r)
		if key, err := o.recipeKey(t.Context(), r); err != nil || key == good.key {
			t.Errorf("%s: the key stays %s (%v)", name, key, err)
		}
	}
	if again := smallRecipe(t, o); again.key != good.key {
		t.Error("the key changes by itself")
	}
}

// TestTheAgentIsLinkedWithWhatThePackageHas: the linker does not report a variable that does not exist.
func TestTheAgentIsLinkedWithWhatThePackageHas(t *testing.T) {
	o := testOptions(t)
	o.Sources = "https://example.com/blob/v1"
	all, err := o.readRecipes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := all[slices.IndexFunc(all, func(r recipe) bool { return r.Name == payload.Agent })]
	source, err := os.ReadFile(filepath.Join(o.Root, "cmd", "wmco-node", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := strings.Join(r.goArguments("out"), " ")
	for variable, value := range map[string]string{payload.OurVersion: o.Version, payload.OurSources: o.Sources} {
		if want := "-X " + variable + "=" + value; !strings.Contains(arguments+" ", want+" ") {
			t.Errorf("%s lacks %s", arguments, want)
		}
		if name := strings.TrimPrefix(variable, "main."); !strings.Contains(string(source), "\nvar "+name+" ") {
			t.Errorf("cmd/wmco-node/main.go has no variable %s", name)
		}
	}
}

func TestSelection(t *testing.T) {
	o := testOptions(t)
	all, err := o.readRecipes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Only = []string{"cni", "kube-log-runner"}
	chosen, err := o.chooseRecipes(all)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range chosen {
		got = append(got, r.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"host-local", "kube-log-runner", "win-bridge", "win-overlay"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Only = []string{"kublet"}
	if _, err := o.chooseRecipes(all); err == nil || !strings.Contains(err.Error(), `unknown name "kublet"; use kubernetes-1.31, kubelet-1.31, `) {
		t.Error(err)
	}
}

func TestNewestVersions(t *testing.T) {
	for _, tt := range []struct {
		have          string
		listed        []string
		patch, latest string
	}{
		{"v1.2.3", nil, "", ""},
		{"v1.2.3", []string{"v1.2.2", "v1.2.3"}, "", ""},
		{"v1.2.3", []string{"v1.2.4", "v1.2.10", "v1.3.0-rc.1"}, "v1.2.10", "v1.2.10"},
		{"v1.2.3", []string{"v2.0.0", "v1.2.4", "nonsense"}, "v1.2.4", "v2.0.0"},
		{"v1.2.3", []string{"v1.3.0"}, "", "v1.3.0"},
	} {
		if patch, latest := newestVersions(tt.have, tt.listed); patch != tt.patch || latest != tt.latest {
			t.Errorf("%s of %v: %q, %q", tt.have, tt.listed, patch, latest)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	n, err := memAvailable(bufio.NewScanner(strings.NewReader("MemTotal:       24663552 kB\nMemAvailable:   23141716 kB\n")))
	if err != nil || n != 23141716<<10 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := memAvailable(bufio.NewScanner(strings.NewReader("MemTotal: 1 kB\n"))); err == nil {
		t.Error("no error without the line")
	}
}
