package mutations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tiny is a working tree of the made-up module, with a copy of it.
func tiny(t *testing.T) Options {
	t.Helper()
	root := t.TempDir()
	o := Options{Tree: filepath.Join(root, "tree"), Copy: filepath.Join(root, "copy"), Report: &bytes.Buffer{}}
	if err := os.CopyFS(o.Tree, os.DirFS(filepath.Join("testdata", "tiny"))); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", o.Tree, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return o
}

// files are the contents of a folder without those of git and of built programs.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type().IsRegular():
			data, err := os.ReadFile(filepath.Join(folder, name))
			all[name] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func tinyList(t *testing.T) []Mutation {
	t.Helper()
	list, err := Read(os.DirFS(filepath.Join("testdata", "tiny", "list")))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func choose(t *testing.T, names ...string) []Mutation {
	t.Helper()
	list, err := ChooseNamed(tinyList(t), names)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestWhatBecomesOfMutations: each in the way of its name, and the tree and its copy stay as they were.
func TestWhatBecomesOfMutations(t *testing.T) {
	o := tiny(t)
	before := files(t, o.Tree)
	names := []string{
		"killed", "killed-by-a-case", "killed-in-a-text", "survives", "not-found", "found-twice", "does-not-compile", "no-such-file", "no-such-test",
		"test-is-broken", "test-is-skipped",
	}
	got, err := Run(t.Context(), choose(t, names...), o)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Killed: {"killed", "killed-by-a-case", "killed-in-a-text"}, Survived: {"survives"}, Skipped: {"test-is-skipped"},
		Wrong: {"not-found", "found-twice", "does-not-compile", "no-such-file", "no-such-test", "test-is-broken"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, o.Report)
	}
	if err := got.Err(); err == nil || !strings.Contains(err.Error(), "1 mutation survived and 6 do not fit the tree: survives, not-found") {
		t.Errorf("error %v", err)
	}
	report := fmt.Sprint(o.Report)
	for _, text := range []string{
		"killed, by TestTooManyCoins\n", "killed-by-a-case, by TestCases/one\n", "A negative number of coins is refused.\n\tpurse.go: n < 0\n\tis now: false\n",
		"not-found: the old text stands 0 times in purse.go", "found-twice: the old text stands 2 times in purse.go", "does-not-compile: the mutated package does not compile",
		"undefined: gold", "no-such-file: the file does not exist", "no-such-test: TestGone has no result in ./.", "test-is-broken: TestBroken fails without the mutation",
		"test-is-skipped: its tests are skipped here",
	} {
		if !strings.Contains(report, text) {
			t.Errorf("the report lacks %q:\n%s", text, report)
		}
	}
	for _, folder := range []string{o.Tree, o.Copy} {
		if diff := cmp.Diff(before, files(t, folder)); diff != "" {
			t.Errorf("%s has changed: -want +got:\n%s", folder, diff)
		}
	}
}

// TestMutationsThatAreKilled are no error, and neither are skipped ones.
func TestMutationsThatAreKilled(t *testing.T) {
	for _, s := range []Summary{{Killed: {"a"}}, {Skipped: {"a"}}, {Killed: {"a"}, Late: {"b"}}} {
		if err := s.Err(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
	for _, s := range []Summary{{}, {Late: {"a"}}, {Killed: {"a"}, Survived: {"b"}}, {Killed: {"a"}, Wrong: {"b"}}} {
		if s.Err() == nil {
			t.Errorf("%v: no error", s)
		}
	}
}

// TestTheCopyFollowsTheTree: changed, new and removed files, and what was left of a mutation when a run was killed.
func TestTheCopyFollowsTheTree(t *testing.T) {
	o := tiny(t)
	c := tree{from: o.Tree, at: o.Copy}
	if err := os.Mkdir(o.Copy, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(folder, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sync := func() {
		t.Helper()
		if err := c.syncTree(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files(t, o.Tree), files(t, o.Copy)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	sync()
	write(o.Tree, "new.go", "package tiny\n")
	write(o.Tree, "rules.txt", "another rule\n")
	sync()
	write(o.Copy, "purse.go", "left of a mutation\n")
	write(o.Copy, "stray.go", "package stray\n")
	if err := os.Remove(filepath.Join(o.Tree, "new.go")); err != nil {
		t.Fatal(err)
	}
	sync()
	info, err := os.Stat(filepath.Join(o.Copy, "purse.go"))
	if err != nil {
		t.Fatal(err)
	}
	if from, err := os.Stat(filepath.Join(o.Tree, "purse.go")); err != nil || !from.ModTime().Equal(info.ModTime()) {
		t.Errorf("the copy has another time: go test would not know it")
	}
}

// TestAnInterruptedRun ends soon, and leaves the tree and its copy as they were.
func TestAnInterruptedRun(t *testing.T) {
	o := tiny(t)
	before := files(t, o.Tree)
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("TINY_STARTED", started)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, choose(t, "slow"), o)
		ended <- err
	}()
	if !exists(t.Context(), started) {
		t.Fatal("the mutation was not tested within minutes")
	}
	if mutated := files(t, o.Copy)["purse.go"]; mutated == before["purse.go"] || files(t, o.Tree)["purse.go"] != before["purse.go"] {
		t.Error("not the copy is mutated")
	}
	interrupted := time.Now()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(interrupted); took > time.Minute {
		t.Errorf("it ended %s after the interruption", took)
	}
	for _, folder := range []string{o.Tree, o.Copy} {
		if diff := cmp.Diff(before, files(t, folder)); diff != "" {
			t.Errorf("%s has changed: -want +got:\n%s", folder, diff)
		}
	}
}

// exists waits for a file, for minutes at most, and reports whether it is there.
func exists(ctx context.Context, path string) bool {
	for end := time.Now().Add(5 * time.Minute); ctx.Err() == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// pastDeadline is a context whose end is its deadline.
type pastDeadline struct{ context.Context } //nolint:containedctx // it is one

// Err implements context.Context.
func (p pastDeadline) Err() error {
	if p.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestTheLimitOfTime stops the run and lists what it left out.
func TestTheLimitOfTime(t *testing.T) {
	o := tiny(t)
	o.Limit = time.Nanosecond
	if _, err := Run(t.Context(), choose(t, "killed"), o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the tree was not copied: error %v", err)
	}
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("TINY_STARTED", started)
	o.limited = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			exists(ctx, started)
			cancel()
		}()
		return pastDeadline{ctx}, cancel
	}
	got, err := Run(t.Context(), choose(t, "killed", "slow", "survives"), o)
	if diff := cmp.Diff(Summary{Killed: {"killed"}, Late: {"slow", "survives"}}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestTwoRuns do not share a copy.
func TestTwoRuns(t *testing.T) {
	o := tiny(t)
	held, err := lock(o.Copy + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := Run(t.Context(), choose(t, "killed"), o); err == nil || !strings.Contains(err.Error(), "another run uses") {
		t.Errorf("error %v", err)
	}
}

// TestTheSizeOfTestsIsTheUsualOne, also where make ci-full runs them longer.
func TestTheSizeOfTestsIsTheUsualOne(t *testing.T) {
	got := goEnvironment([]string{"PATH=/bin", "WMCO_OPERATOR_KILLS=100", "WMCO_WINE=/wine", "WMCO_SCALE_NODES="})
	if diff := cmp.Diff([]string{"PATH=/bin", "WMCO_WINE=/wine"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWrongLists(t *testing.T) {
	_, err := Read(os.DirFS(filepath.Join("testdata", "tiny", "wrong")))
	want := strings.Join([]string{
		`mutation "Not a name": the name is not of lower-case words with hyphens between them`,
		`mutation "twice": file "../a.go" is not a clean path in the tree`,
		`mutation "twice": old is empty or equal to new`,
		`mutation "twice": the name is used twice`,
		`mutation "no-sentence": the sentence is missing`,
		`mutation "no-package": package "wmco/a" does not begin with ./`,
		`mutation "no-tests": tests are not names of tests`,
		`mutation "needs-something-else": needs "patience" is none of "control plane" and "wine"`,
	}, "\n")
	if got := fmt.Sprint(err); got != want {
		t.Errorf("error\n%s\nwant\n%s", got, want)
	}
	if _, err := Read(os.DirFS(t.TempDir())); err == nil {
		t.Error("an empty folder is a list")
	}
}

// TestASample is of mutations whose tests run in memory, and the seed chooses it.
func TestASample(t *testing.T) {
	list := tinyList(t)
	names := func(list []Mutation) (names []string) {
		for _, m := range list {
			names = append(names, m.Name)
		}
		return names
	}
	one, two := names(ChooseSample(list, 4, "one")), names(ChooseSample(list, 4, "two"))
	if len(one) != 4 || !cmp.Equal(one, names(ChooseSample(list, 4, "one"))) || cmp.Equal(one, two) {
		t.Errorf("samples %q and %q", one, two)
	}
	if all := names(ChooseSample(list, 100, "")); len(all) != len(list)-1 || strings.Contains(strings.Join(all, " "), "slow") {
		t.Errorf("all that run in memory: %q", all)
	}
}

// TestTheListFitsTheTree: each old text stands once in its file, and each test exists. The tests themselves run with make mutations.
func TestTheListFitsTheTree(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	list, err := Read(os.DirFS("list"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
		if err == nil {
			_, err = m.Apply(string(content))
		}
		if err != nil {
			t.Errorf("mutation %s: %v", m.Name, err)
		}
		sources, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m.Package), "*_test.go"))
		if err != nil || len(sources) == 0 {
			t.Errorf("mutation %s: there are no tests in %s (%v)", m.Name, m.Package, err)
		}
		var text strings.Builder
		for _, s := range sources {
			data, err := os.ReadFile(s)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(data)
		}
		for _, test := range m.Tests {
			function, _, _ := strings.Cut(test, "/")
			if !regexp.MustCompile(`(?m)^func ` + function + `\(`).MatchString(text.String()) {
				t.Errorf("mutation %s: there is no %s in %s", m.Name, function, m.Package)
			}
		}
	}
}
