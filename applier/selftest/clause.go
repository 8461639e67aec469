package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest/result"
	"wmco/bundle"
)

// Clause is one promise of the contract, and its test.
type Clause struct {
	// Name is the promise, as a sentence. Skips and results go by it.
	Name string
	test func(*trial)
}

// Part is the clauses on one subject.
type Part struct {
	Name    string
	Clauses []Clause
}

// Parts returns the whole contract.
func Parts() []Part {
	return []Part{
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
		{"shutdown", shutdownClauses},
		{"settings", settingClauses},
		{"pending settings", pendingClauses},
		{"host", hostClauses},
	}
}

// T is what a clause reports to: a test of Go, or a Run.
type T interface {
	Reporter
	Scope
}

// Reporter takes what a clause finds.
type Reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Scope is how long a clause lasts.
type Scope interface {
	Context() context.Context
	// Cleanup calls a function when the clause has ended, the last one first.
	Cleanup(undo func())
	// Skip ends a clause that does not fit this machine, with the reason.
	Skip(args ...any)
}

// Test tests the clause on a fixture that nothing has been done on.
func (c Clause) Test(t T, f Fixture) {
	t.Helper()
	c.test(&trial{T: t, clause: c, fixture: f, host: f.Host(t)})
}

// trial is the test of one clause on one fixture.
type trial struct {
	T
	clause  Clause
	fixture Fixture
	host    applier.Host
}

// recorder takes a failure with its parts. A test of Go gets a text.
type recorder interface{ record(f result.Failure) }

// fail reports a failure.
func (t *trial) fail(f result.Failure) {
	t.Helper()
	if r, ok := t.T.(recorder); ok {
		r.record(f)
		return
	}
	t.Errorf("expected %s, seen %s", f.Expected, f.Seen)
}

// need returns the capability C of the fixture. Without it the clause fails.
func need[C any](t *trial) C {
	t.Helper()
	capability, ok := t.fixture.(C)
	if !ok {
		t.Fatalf("the fixture lacks %T: add its methods, or skip %q with the reason", &capability, t.clause.Name)
	}
	return capability
}

// path returns a path in the folder of the fixture.
func (t *trial) path(name string) string { return t.fixture.Folder() + `\` + name }

// ok ends the clause with an error of an operation that should have none.
func (t *trial) ok(err error) {
	t.Helper()
	if err == nil {
		return
	}
	if r, ok := t.T.(recorder); ok {
		r.record(result.Failure{Expected: "no error", Seen: err.Error(), Code: codeOf(err)})
		runtime.Goexit()
	}
	t.Fatal(err)
}

// equal compares what a clause promises with what the host did.
func (t *trial) equal(want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.fail(result.Failure{Expected: valueText(want), Seen: valueText(got)})
	}
}

// maxText is the length of a value in a failure, in bytes.
const maxText = 2000

// valueText shows a value, the beginning of a long one.
func valueText(value any) string {
	text := fmt.Sprintf("%+v", value)
	if reflect.ValueOf(value).Kind() == reflect.String || reflect.ValueOf(value).Kind() == reflect.Slice {
		text = fmt.Sprintf("%q", value)
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
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
	if !errors.As(err, &refusal) || !slices.Contains(reasons, refusal.Reason) {
		t.fail(result.Failure{Expected: fmt.Sprintf("an error of a file with one of the reasons %q", reasons),
			Seen: errorText(err), Code: codeOf(err)})
	}
}

// errorText shows an error, or that there was none.
func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
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

// codeOf returns the number of the system's error in err (learn.microsoft.com/windows/win32/debug/system-error-codes on
// Windows).
func codeOf(err error) uint32 {
	var number syscall.Errno
	if errors.As(err, &number) {
		return uint32(number) //nolint:gosec // an error of the system has 32 bits
	}
	return 0
}
