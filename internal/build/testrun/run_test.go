package testrun

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// module has tests that pass and skip, a test that fails the first time and passes, is skipped or does not run the second time, and a package that
// fails as a whole.
var module = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"fine/fine_test.go": `package fine
import "testing"
func TestFine(t *testing.T) { t.Run("part", func(t *testing.T) {}) }
func TestWithoutRoot(t *testing.T) { t.Log("before"); t.Skip("needs root") }
`,
	"flaky/flaky_test.go": `package flaky
import ("errors"; "fmt"; "io/fs"; "os"; "testing")
func first() bool {
	if _, err := os.Stat("ran"); !errors.Is(err, fs.ErrNotExist) { return false }
	_ = os.WriteFile("ran", nil, 0o600)
	return true
}
func TestFails(t *testing.T) {
	if os.Getenv("CASE") == "skipped" && !first() { t.Skip("alone, it judges nothing") }
	if os.Getenv("CASE") == "passed" && !first() { return }
	t.Run("part", func(t *testing.T) { t.Log("a log"); t.Error("the reason\nin two lines")
		for i := range 100 { fmt.Fprintln(t.Output(), "noise", i) } })
}
`,
	"whole/whole_test.go": `package whole
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) {
	status := m.Run()
	if os.Getenv("CASE") == "whole" { fmt.Println("a process is left"); status = 1 }
	os.Exit(status)
}
func TestPanics(t *testing.T) { if os.Getenv("CASE") == "panic" { panic("broken") } }
`,
	"leaves/leaves_test.go": `package leaves
import ("os"; "os/exec"; "testing")
func TestLeaves(t *testing.T) {
	switch os.Getenv("CASE") {
	case "a file is left": _, _ = os.CreateTemp("", "forgotten")
	case "a process is left": _ = exec.Command("sleep", "3600").Start()
	}
}
`,
	"broken/broken_test.go": `package broken
import "testing"
func TestFine(t *testing.T) {}
`,
}

// TestOnlyWhatPassedCounts: a test that failed and did not pass when it ran alone stays failed, whatever else became of it. Each failure has its
// cause, and where its output is; the counts are the last line.
func TestOnlyWhatPassedCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		again  int
		want   Result
		ok     bool
		prints []string
	}{
		{
			name: "all pass", args: []string{"./fine", "./whole"}, ok: true,
			want:   Result{Passed: 3, Skipped: 1, Skips: []string{"TestWithoutRoot of example/fine (needs root)"}},
			prints: []string{"ok    example/fine", "tests: 3 passed, 0 failed, 1 skipped"},
		},
		{
			name: "failed", args: []string{"./flaky", "./whole"},
			want:   Result{Passed: 1, Failed: 2},
			prints: []string{"failed: TestFails/part of example/flaky", "the reason", "in two lines", "TestFails_part.log", "FAIL  example/flaky", "tests: 1 passed, 2 failed, 0 skipped"},
		},
		{
			name: "passed", args: []string{"./flaky"}, again: 3, ok: true,
			want:   Result{Passed: 2, Again: []string{"TestFails of example/flaky"}},
			prints: []string{"failed once, and passed alone: TestFails of example/flaky", "tests: 2 passed, 0 failed, 0 skipped"},
		},
		{
			name: "skipped", args: []string{"./flaky"}, again: 3, want: Result{Failed: 2},
			prints: []string{"skipped the second time: the test stays failed", "tests: 0 passed, 2 failed, 0 skipped"},
		},
		{
			name: "whole", args: []string{"./whole"}, again: 3, want: Result{Passed: 1},
			prints: []string{"failed: example/whole", "a process is left", "a package failed without a failed test"},
		},
		{
			name: "panic", args: []string{"./whole"}, want: Result{Failed: 1},
			prints: []string{"failed: TestPanics of example/whole", "panic: broken"},
		},
		{
			name: "a file is left", args: []string{"./leaves"}, want: Result{Passed: 1},
			prints: []string{"left by a test: " + os.TempDir(), "/forgotten"},
		},
		{
			name: "a process is left", args: []string{"./leaves"}, want: Result{Passed: 1},
			prints: []string{"left by a test: process ", ": sleep 3600"},
		},
		{
			name: "nothing is left", args: []string{"./leaves"}, ok: true, want: Result{Passed: 1},
		},
		{
			name: "no package", args: []string{"./nowhere"}, again: 3, want: Result{},
			prints: []string{"nowhere"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CASE", c.name)
			dir := writeModule(t)
			var out bytes.Buffer
			got, err := Run(t.Context(), Options{Dir: dir, Args: append([]string{"-timeout=5m"}, c.args...), Logs: filepath.Join(dir, "logs"), Again: c.again, Out: &out})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Result{}), cmpopts.IgnoreFields(Result{}, "Packages")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.OK() != c.ok {
				t.Errorf("OK is %t", got.OK())
			}
			if strings.Contains(out.String(), "noise") {
				t.Errorf("it prints logs:\n%s", &out)
			}
			for _, text := range c.prints {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, &out)
				}
			}
		})
	}
}

// TestTheOutputOfAFailureIsKept whole, beside the lines that are printed.
func TestTheOutputOfAFailureIsKept(t *testing.T) {
	dir := writeModule(t)
	logs := filepath.Join(dir, "logs")
	var out bytes.Buffer
	if _, err := Run(t.Context(), Options{Dir: dir, Args: []string{"./flaky"}, Logs: logs, Out: &out}); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(logs, "example", "flaky", "TestFails_part.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"=== RUN   TestFails/part", "a log", "the reason", "noise 99", "--- FAIL"} {
		if !strings.Contains(string(kept), text) {
			t.Errorf("the file lacks %q:\n%s", text, kept)
		}
	}
}

// TestSkipsAreAllowedByName: in a strict run, a skip that no line allows is a failure.
func TestSkipsAreAllowedByName(t *testing.T) {
	for list, ok := range map[string]bool{
		"example/fine TestWithoutRoot # CI runs it as root": true,
		"example/.* Test.*            # everything":         true,
		"example/fine TestWithout     # another test":       false,
		"example/other TestWithoutRoot # another package":   false,
		"": false,
	} {
		allowed, err := ParseAllowed("# a comment\n\n" + list)
		if err != nil {
			t.Fatal(err)
		}
		dir := writeModule(t)
		var out bytes.Buffer
		got, err := Run(t.Context(), Options{Dir: dir, Args: []string{"./fine"}, Logs: filepath.Join(dir, "logs"), Strict: true, Allowed: allowed, Out: &out})
		if err != nil {
			t.Fatal(err)
		}
		if got.OK() != ok {
			t.Errorf("%q: OK is %t:\n%s", list, got.OK(), &out)
		}
	}
	for _, wrong := range []string{"example/fine TestWithoutRoot", "example/fine TestWithoutRoot # ", "example/( # a reason"} {
		if _, err := ParseAllowed(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func writeModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range module {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
