package hostsim

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// clause is one promise of the contract, and its test.
type clause struct {
	name string
	test func(*trial)
}

// trial is the test of one clause on one fixture.
type trial struct {
	*testing.T
	clause  clause
	fixture Fixture
	host    applier.Host
}

// Contract tests everything that applier.Host promises, each clause on a fixture of maker. skips has the reasons for which
// clauses are skipped, by their names. An unknown name and an empty reason fail.
func Contract(t *testing.T, maker Maker, skips map[string]string) {
	t.Helper()
	unknown := map[string]bool{}
	for name := range skips {
		unknown[name] = true
	}
	for _, part := range parts() {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.clauses {
				delete(unknown, c.name)
				reason, skip := skips[c.name]
				t.Run(c.name, func(t *testing.T) {
					if skip {
						skipFor(t, reason)
					}
					m := maker(t)
					c.test(&trial{T: t, clause: c, fixture: m, host: m.Host(t)})
				})
			}
		})
	}
	for name := range unknown {
		t.Errorf("no clause of the contract has the name %q, which is to be skipped", name)
	}
}

func skipFor(t *testing.T, reason string) {
	t.Helper()
	if reason == "" {
		t.Fatal("skipped without a reason")
	}
	t.Skip(reason)
}

// part is the clauses on one subject.
type part struct {
	name    string
	clauses []clause
}

func parts() []part {
	return []part{
		{"reading", readClauses},
		{"writing", writeClauses},
		{"access", accessClauses},
		{"room", roomClauses},
		{"folders", folderClauses},
		{"moving", moveClauses},
		{"owners", ownerClauses},
		{"links", linkClauses},
		{"other programs", otherProgramClauses},
		{"lock", lockClauses},
		{"services", serviceClauses},
		{"starting and stopping", startClauses},
		{"dependencies", dependencyClauses},
		{"settings", settingClauses},
		{"pending settings", pendingClauses},
		{"host", hostClauses},
	}
}

// need returns the capability C of the fixture. Without it the clause fails.
func need[C any](t *trial) C {
	t.Helper()
	capability, ok := t.fixture.(C)
	if !ok {
		t.Fatalf("the fixture lacks hostsim.%T: add its methods, or skip %q with the reason", &capability, t.clause.name)
	}
	return capability
}

// path returns a path in the folder of the fixture.
func (t *trial) path(name string) string { return t.fixture.Folder() + `\` + name }

func (t *trial) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal compares what a clause promises with what the host did.
func (t *trial) equal(want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// write writes a file for users.
func (t *trial) write(path, text string) {
	t.Helper()
	t.ok(t.host.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader(text)))
}

// read returns the contents of a file, "(absent)" if it does not exist.
func (t *trial) read(path string) string {
	t.Helper()
	f, err := t.host.Open(t.Context(), path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(absent)"
	}
	t.ok(err)
	data, err := io.ReadAll(f)
	t.ok(err)
	t.ok(f.Close())
	return string(data)
}

func (t *trial) stat(path string) plan.FileInfo {
	t.Helper()
	infos, err := t.host.Stat(t.Context(), []string{path})
	t.ok(err)
	if len(infos) != 1 {
		t.Fatalf("%d results for one path", len(infos))
	}
	return infos[0]
}

// list returns the names in the folder of the fixture, or in one in it.
func (t *trial) list(names ...string) []string {
	t.Helper()
	infos, err := t.host.List(t.Context(), strings.Join(append([]string{t.fixture.Folder()}, names...), `\`))
	t.ok(err)
	var all []string
	for _, i := range infos {
		all = append(all, bundle.Base(i.Path))
	}
	return all
}

// leftovers returns the names in the folder of the fixture that a host may leave, and the others.
func (t *trial) leftovers() (leftovers, others []string) {
	t.Helper()
	for _, name := range t.list() {
		if plan.IsLeftover(t.path(name)) {
			leftovers = append(leftovers, name)
		} else {
			others = append(others, name)
		}
	}
	return leftovers, others
}

// refused checks that err is a *applier.FileError with one of the reasons.
func (t *trial) refused(err error, reasons ...applier.FileReason) {
	t.Helper()
	var refusal *applier.FileError
	switch {
	case !errors.As(err, &refusal):
		t.Errorf("got %v, want a *applier.FileError", err)
	case !slices.Contains(reasons, refusal.Reason):
		t.Errorf("got reason %q, want one of %q: %v", refusal.Reason, reasons, err)
	}
}

// cleanup undoes something with a new host after the clause.
func (t *trial) cleanup(undo func(context.Context, applier.Host) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := undo(context.WithoutCancel(t.Context()), t.fixture.Host(t)); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
}

// soon returns a context with the time that a host may take for what needs no waiting.
func (t *trial) soon() context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}
