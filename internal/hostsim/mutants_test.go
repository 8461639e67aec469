package hostsim

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
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// mutantName is the environment variable that names the mutant on which the contract is tested.
const mutantName = "WMCO_HOSTTEST_MUTANT"

// mutant is a host that breaks the contract, and a clause that must fail.
type mutant struct {
	host  func(*Memory) applier.Host
	fails string
}

// badSkips is the name of a test with a skip of an unknown clause.
const badSkips = "bad skips"

// Each mutant overrides one operation.
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
	neverFills     struct{ *Memory }
	ignoresSize    struct{ *Memory }
)

var mutants = map[string]mutant{
	"Write leaves the file under NewName":  {func(m *Memory) applier.Host { return leavesNewName{m} }, "a file has the contents that were written, from 0 bytes to 5 MiB"},
	"Write ignores the access":             {func(m *Memory) applier.Host { return forgetsAccess{m} }, "users read files for users and not those for administrators"},
	"Write writes in place":                {func(m *Memory) applier.Host { return writesInPlace{m} }, "a hard link keeps the contents when the first name is replaced or removed"},
	"Write keeps half a file":              {func(m *Memory) applier.Host { return keepsHalf{m} }, "contents that end in an error change nothing and leave no file"},
	"List sorts backwards":                 {func(m *Memory) applier.Host { return listsBackwards{m} }, "List is sorted by name and does not descend"},
	"Remove needs a file":                  {func(m *Memory) applier.Host { return needsFiles{m} }, "removing a path that does not exist is no error"},
	"Link copies":                          {func(m *Memory) applier.Host { return copiesLinks{m} }, "a hard link keeps the contents when the first name is replaced or removed"},
	"Lock has no effect":                   {func(m *Memory) applier.Host { return sharesLock{m} }, "the error of a second lock names the owner of the first"},
	"StopService has no effect":            {func(m *Memory) applier.Host { return neverStops{m} }, "a service that hangs while it stops is killed"},
	"StartService never fails":             {func(m *Memory) applier.Host { return alwaysStarts{m} }, "a service whose program exits at once does not start"},
	"PutService keeps the old environment": {func(m *Memory) applier.Host { return keepsOldConfig{m} }, "the environment of a service is set and removed"},
	"DeleteService never fails": {func(m *Memory) applier.Host { return deletesLater{m} },
		"a service with an open handle stays marked for deletion until the handle is closed"},
	"Set trims values":                 {func(m *Memory) applier.Host { return trims{m} }, "a variable may be empty, long or have characters that are special to a shell"},
	"Settings are never pending":       {func(m *Memory) applier.Host { return neverPends{m} }, "a new host name takes effect with the next boot"},
	"Probe always succeeds":            {func(m *Memory) applier.Host { return alwaysHealthy{m} }, "a TCP probe succeeds while something answers"},
	"Services sorts":                   {func(m *Memory) applier.Host { return sortsServices{m} }, "Services keeps the order of the names and returns missing ones as absent"},
	"Set removes other trusted CAs":    {func(m *Memory) applier.Host { return clearsRoots{m} }, "unmanaged trusted CAs stay"},
	"Free never changes":               {func(m *Memory) applier.Host { return neverFills{m} }, "a file takes its room, and gives it back when it is removed"},
	"Write has room without end":       {func(m *Memory) applier.Host { return ignoresSize{m} }, "a file for which there is no room changes nothing and leaves no file"},
	"Write removes the old file first": {func(m *Memory) applier.Host { return movesAway{m} }, "a running program is replaced, and the old one is moved aside until it ends"},
}

func (h leavesNewName) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	err := h.Memory.Write(ctx, path, access, content)
	h.Place(plan.NewName(path), access, "left")
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

func (h listsBackwards) List(ctx context.Context, directory string) ([]plan.FileInfo, error) {
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

func (h keepsOldConfig) PutService(ctx context.Context, c plan.ServiceConfig) error {
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

func (h trims) Set(ctx context.Context, x plan.Setting) error {
	x.Value = strings.TrimSpace(x.Value)
	return h.Memory.Set(ctx, x)
}

func (h neverPends) Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error) {
	all, err := h.Memory.Settings(ctx, names)
	for i := range all {
		all[i].Pending = false
	}
	return all, err
}

func (h alwaysHealthy) Probe(context.Context, bundle.Probe) error { return nil }

func (h sortsServices) Services(ctx context.Context, names []string) ([]plan.ServiceState, error) {
	return h.Memory.Services(ctx, slices.Sorted(slices.Values(names)))
}

func (h clearsRoots) Set(ctx context.Context, x plan.Setting) error {
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

func (neverFills) Free(context.Context) (int64, error) { return 4 << 20, nil }

func (h ignoresSize) Write(_ context.Context, path string, access bundle.Access, content io.Reader) error {
	data, err := io.ReadAll(content)
	h.Place(path, access, string(data))
	return err
}

// TestContractOnMutant runs in another process, where it must fail.
func TestContractOnMutant(t *testing.T) {
	name := os.Getenv(mutantName)
	switch name {
	case badSkips:
		Contract(t, func(*testing.T) selftest.Fixture { return newMemoryFixture() }, map[string]string{"unknown clause": "reason"})
		return
	case "":
		t.Skip("run by TestContractFindsEveryMutant")
	}
	Contract(t, func(*testing.T) selftest.Fixture {
		m := newMemoryFixture()
		m.Open = func(selftest.T) applier.Host { return mutants[name].host(m.memory) }
		return m
	}, nil)
}

func TestContractFindsEveryMutant(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := failing(t, name); !strings.Contains(out, "/"+strings.ReplaceAll(m.fails, " ", "_")+" (") {
				t.Errorf("the clause %q did not fail:\n%s", m.fails, out)
			}
		})
	}
}

func TestSkipOfUnknownClauseFails(t *testing.T) {
	t.Parallel()
	if out := failing(t, badSkips); !strings.Contains(out, `no clause of the contract has the name "unknown clause"`) {
		t.Error(out)
	}
}

// failing returns the output of the contract on a mutant.
func failing(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestContractOnMutant$")
	cmd.Env = append(os.Environ(), mutantName+"="+name)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("got %v, want the test to fail:\n%s", err, out)
	}
	return string(out)
}

// TestClauseNamesAreUnique: skips go by name.
func TestClauseNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range selftest.Parts() {
		for _, c := range p.Clauses {
			if seen[c.Name] {
				t.Errorf("two clauses have the name %q: a skip would apply to both", c.Name)
			}
			seen[c.Name] = true
		}
	}
}
