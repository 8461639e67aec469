package hosttest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// mutantName is the variable of the environment that names the broken host which the contract is tried on.
const mutantName = "WMCO_HOSTTEST_MUTANT"

// mutant is a host that breaks its contract, and a clause that must notice.
type mutant struct {
	host    func(*Memory) applier.Host
	noticed string
}

// badSkips stand for a mutant: they skip a clause that there is not.
const badSkips = "bad skips"

// The mutants override one operation each.
type (
	leavesNewName  struct{ *Memory }
	forgetsAccess  struct{ *Memory }
	writesInPlace  struct{ *Memory }
	keepsHalf      struct{ *Memory }
	listsBackwards struct{ *Memory }
	needsFiles     struct{ *Memory }
	copiesLinks    struct{ *Memory }
	sharesLock     struct{ *Memory }
	neverStops     struct{ *Memory }
	alwaysStarts   struct{ *Memory }
	keepsOldConfig struct{ *Memory }
	deletesLater   struct{ *Memory }
	trims          struct{ *Memory }
	neverPends     struct{ *Memory }
	alwaysHealthy  struct{ *Memory }
	sortsServices  struct{ *Memory }
	clearsRoots    struct{ *Memory }
	movesAway      struct{ *Memory }
)

var mutants = map[string]mutant{
	"leaves what it wrote beside": {func(m *Memory) applier.Host { return leavesNewName{m} }, "a file holds what was written, from nothing to many megabytes"},
	"gives everything to users":   {func(m *Memory) applier.Host { return forgetsAccess{m} }, "users read what is theirs and not what is the administrators'"},
	"writes in place":             {func(m *Memory) applier.Host { return writesInPlace{m} }, "a second name keeps the contents when the first is replaced or removed"},
	"keeps half a file":           {func(m *Memory) applier.Host { return keepsHalf{m} }, "contents that break off change nothing and leave nothing"},
	"lists backwards":             {func(m *Memory) applier.Host { return listsBackwards{m} }, "List tells what is in a folder by name, not what is in folders in it"},
	"cannot remove nothing":       {func(m *Memory) applier.Host { return needsFiles{m} }, "what is not there is removed without an error"},
	"copies instead of linking":   {func(m *Memory) applier.Host { return copiesLinks{m} }, "a second name keeps the contents when the first is replaced or removed"},
	"lets two lock":               {func(m *Memory) applier.Host { return sharesLock{m} }, "a second one is told who has the lock, until it is released"},
	"does not stop":               {func(m *Memory) applier.Host { return neverStops{m} }, "a service that hangs when it is to stop is killed"},
	"says that everything starts": {func(m *Memory) applier.Host { return alwaysStarts{m} }, "a service whose program ends at once did not start"},
	"keeps the old environment":   {func(m *Memory) applier.Host { return keepsOldConfig{m} }, "a service keeps its environment, and loses it"},
	"deletes some time": {func(m *Memory) applier.Host { return deletesLater{m} },
		"a service that somebody has a handle to stays marked for deletion until the handle is closed"},
	"trims values":            {func(m *Memory) applier.Host { return trims{m} }, "a variable may hold nothing, much, or what has a meaning to a shell"},
	"forgets what is pending": {func(m *Memory) applier.Host { return neverPends{m} }, "another host name comes into force with the next boot"},
	"takes all for healthy":   {func(m *Memory) applier.Host { return alwaysHealthy{m} }, "a probe over TCP holds while somebody answers"},
	"sorts services":          {func(m *Memory) applier.Host { return sortsServices{m} }, "services are told in the order of the names, those that are not there as absent"},
	"clears the store":        {func(m *Memory) applier.Host { return clearsRoots{m} }, "certificates of others stay"},
	"loses programs that run": {func(m *Memory) applier.Host { return movesAway{m} }, "a program that runs is replaced, and the old one stands aside until it ends"},
}

func (h leavesNewName) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	err := h.Memory.Write(ctx, path, access, content)
	h.Place(applier.NewName(path), access, "left")
	return err
}

func (h forgetsAccess) Write(ctx context.Context, path string, _ bundle.Access, content io.Reader) error {
	return h.Memory.Write(ctx, path, bundle.AccessUsers, content)
}

func (h writesInPlace) Write(_ context.Context, path string, access bundle.Access, content io.Reader) error {
	data, err := io.ReadAll(content)
	h.Place(path, access, string(data))
	return err
}

func (h keepsHalf) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	data, failed := io.ReadAll(content)
	return errors.Join(h.Memory.Write(ctx, path, access, strings.NewReader(string(data))), failed)
}

func (h listsBackwards) List(ctx context.Context, directory string) ([]applier.FileInfo, error) {
	infos, err := h.Memory.List(ctx, directory)
	slices.Reverse(infos)
	return infos, err
}

func (h needsFiles) Remove(ctx context.Context, path string) error {
	if _, ok := h.Contents(path); !ok {
		return simulation.ErrFileNotFound
	}
	return h.Memory.Remove(ctx, path)
}

func (h copiesLinks) Link(ctx context.Context, path, second string) error {
	data, _ := h.Contents(path)
	return h.Write(ctx, second, bundle.AccessUsers, strings.NewReader(data))
}

func (h sharesLock) Lock(context.Context, string) (func() error, error) {
	return func() error { return nil }, nil
}

func (h neverStops) StopService(context.Context, string) error { return nil }

func (h alwaysStarts) StartService(ctx context.Context, name string) error {
	_ = h.Memory.StartService(ctx, name) // that is the mutation
	return nil
}

func (h keepsOldConfig) PutService(ctx context.Context, c applier.ServiceConfig) error {
	old, err := h.Services(ctx, []string{c.Name})
	if err == nil && len(c.Environment) == 0 {
		c.Environment = old[0].Environment
	}
	return errors.Join(err, h.Memory.PutService(ctx, c))
}

func (h deletesLater) DeleteService(ctx context.Context, name string) error {
	_ = h.Memory.DeleteService(ctx, name) // that is the mutation
	return nil
}

func (h trims) Set(ctx context.Context, x applier.Setting) error {
	x.Value = strings.TrimSpace(x.Value)
	return h.Memory.Set(ctx, x)
}

func (h neverPends) Settings(ctx context.Context, names []applier.Setting) ([]applier.Setting, error) {
	all, err := h.Memory.Settings(ctx, names)
	for i := range all {
		all[i].Pending = false
	}
	return all, err
}

func (h alwaysHealthy) Probe(context.Context, bundle.Probe) error { return nil }

func (h sortsServices) Services(ctx context.Context, names []string) ([]applier.ServiceState, error) {
	return h.Memory.Services(ctx, slices.Sorted(slices.Values(names)))
}

func (h clearsRoots) Set(ctx context.Context, x applier.Setting) error {
	if x.Kind == bundle.KindTrustedCA {
		err := h.Edit(ctx, func(s *simulation.State) { clear(s.Settings) })
		if err != nil {
			return err
		}
	}
	return h.Memory.Set(ctx, x)
}

func (h movesAway) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	h.Discard(path)
	return h.Memory.Write(ctx, path, access, content)
}

// TestTheContractOnAMutant runs in a program of its own, and is to fail there.
func TestTheContractOnAMutant(t *testing.T) {
	name := os.Getenv(mutantName)
	switch name {
	case badSkips:
		Contract(t, func(*testing.T) Fixture { return newMemoryMachine() }, map[string]string{"pigs fly": "gravity"})
		return
	case "":
		t.Skip("it is run by TestTheContractNoticesEveryMutant")
	}
	Contract(t, func(*testing.T) Fixture {
		m := newMemoryMachine()
		m.Open = func(testing.TB) applier.Host { return mutants[name].host(m.memory) }
		return m
	}, nil)
}

func TestTheContractNoticesEveryMutant(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := failing(t, name); !strings.Contains(out, "/"+strings.ReplaceAll(m.noticed, " ", "_")+" (") {
				t.Errorf("the clause %q does not fail:\n%s", m.noticed, out)
			}
		})
	}
}

func TestASkipOfNothingFails(t *testing.T) {
	t.Parallel()
	if out := failing(t, badSkips); !strings.Contains(out, `no clause of the contract says "pigs fly"`) {
		t.Error(out)
	}
}

// failing returns what the contract says about a mutant.
func failing(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheContractOnAMutant$")
	cmd.Env = append(os.Environ(), mutantName+"="+name)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("got %v, want the test to fail:\n%s", err, out)
	}
	return string(out)
}

// TestClausesHaveNamesOfTheirOwn: skips go by them.
func TestClausesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range parts() {
		for _, c := range p.clauses {
			if seen[c.says] {
				t.Errorf("two clauses say %q: a skip would be about both", c.says)
			}
			seen[c.says] = true
		}
	}
}
