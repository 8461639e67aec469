package payloadbuild

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/internal/test/winetest"
	"wmco/payload"
	"wmco/payload/store"
)

// variable names the folder of the payload in the environment.
const variable = "WMCO_PAYLOAD"

// open opens the built payload. It skips the test if there is none.
func open(t *testing.T) *store.Store {
	t.Helper()
	dir := os.Getenv(variable)
	if _, err := os.Stat(filepath.Join(dir, store.ListFile)); dir == "" || err != nil {
		t.Skip("no payload: make payload PAYLOAD=kube-log-runner,cni")
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func raw(t *testing.T, s *store.Store, name string) []byte {
	t.Helper()
	c, err := s.Raw(name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	data, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBuildInformationMatchesTheTable reads the build information of every built executable.
func TestBuildInformationMatchesTheTable(t *testing.T) {
	s := open(t)
	o := testOptions(t)
	all, err := o.readRecipes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Entries() {
		i := slices.IndexFunc(all, func(r recipe) bool { return r.Name == e.Name })
		path := filepath.Join(t.TempDir(), e.Name+".exe")
		if err := os.WriteFile(path, raw(t, s, e.Name), 0o600); err != nil {
			t.Fatal(err)
		}
		r := all[i]
		r.release = e.Go
		if _, err := r.inspectProgram(path); err != nil {
			t.Error(err)
		}
	}
}

// TestExecutablesStartAndPrintTheirVersion starts every built executable under Wine.
func TestExecutablesStartAndPrintTheirVersion(t *testing.T) {
	s := open(t)
	p := winetest.New(t)
	for _, e := range s.Entries() {
		t.Run(e.Name, func(t *testing.T) {
			p.WriteFile(t, e.Path, raw(t, s, e.Name))
			command := payload.Find(e.Name).VersionCommand
			r := p.Run(t, winetest.Command{Path: e.Path, Args: command.Args})
			if want := cmp.Or(command.Prints, e.Version); !strings.Contains(r.Stdout+r.Stderr, want) {
				t.Errorf("%v: it does not print %q: %+v", command.Args, want, r)
			}
		})
	}
}
