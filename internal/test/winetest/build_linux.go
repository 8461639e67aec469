package winetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Build builds a program of the module in dir for Windows.
func (p *Prefix) Build(t testing.TB, windows, dir, pkg string) {
	t.Helper()
	if err := p.mkdir(windows); err != nil {
		t.Fatal(err)
	}
	touchFolders(t, dir, pkg)
	runGo(t, dir, pkg, "build", "-o", p.Path(windows))
}

// pureGo is a tag without which go.podman.io/image needs C. No other package has it.
const pureGo = "containers_image_openpgp"

// Program returns a program of the module in dir, built for Windows. The linker sets the variables, such as
// main.name=value.
func Program(t testing.TB, dir, pkg string, variables ...string) []byte {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program.exe")
	touchFolders(t, dir, pkg)
	flags := "-s -w"
	for _, v := range variables {
		flags += " -X " + v
	}
	runGo(t, dir, pkg, "build", "-trimpath", "-tags="+pureGo, "-ldflags="+flags, "-o", exe)
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Test builds the tests of a package of the module in dir for Windows and runs them, without the files in testdata. It
// returns the result of each test and subtest: pass, fail or skip.
func (p *Prefix) Test(t testing.TB, dir, pkg string) map[string]string {
	t.Helper()
	const exe = `C:\k\package.test.exe`
	if err := p.mkdir(exe); err != nil {
		t.Fatal(err)
	}
	touchFolders(t, dir, pkg)
	runGo(t, dir, pkg, "test", "-c", "-o", p.Path(exe))
	r := p.Run(t, Command{Path: exe, Args: []string{"-test.v=test2json"}, Dir: `C:\k`, Limit: 5 * patience})
	results, failures := parseResults(t, r.Stdout)
	if r.ExitCode != 0 {
		t.Errorf("exit code %d:\n%s%s", r.ExitCode, failures, r.Stderr)
	}
	return results
}

// parseResults reads the output of a test program. It returns the result of each test, and what failed tests and the
// package itself printed.
func parseResults(t testing.TB, printed string) (results map[string]string, failures string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "test2json")
	cmd.Stdin = strings.NewReader(printed)
	events, err := cmd.Output()
	if err != nil {
		t.Fatalf("reading the output of the tests: %v", err)
	}
	results = map[string]string{}
	output := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(events)); ; {
		var e struct{ Action, Test, Output string }
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return results, failedOutput(results, output)
		} else if err != nil {
			t.Fatal(err)
		}
		switch e.Action {
		case "output":
			output[e.Test] += e.Output
		case "pass", "fail", "skip":
			if e.Test != "" {
				results[e.Test] = e.Action
			}
		}
	}
}

// failedOutput joins the output of tests that neither passed nor were skipped, by name. A test that was interrupted has
// no result.
func failedOutput(results, output map[string]string) string {
	var all strings.Builder
	for _, test := range slices.Sorted(maps.Keys(output)) {
		if result := results[test]; result != "pass" && result != "skip" {
			all.WriteString(output[test])
		}
	}
	return all.String()
}

// runGo runs the go command for a package, with Windows as the target.
func runGo(t testing.TB, dir, pkg string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s %s: %v\n%s%s", strings.Join(args, " "), pkg, err, out, complaints.String())
	}
	return string(out)
}

// touchFolders opens the folders of a package and of the packages of its module that it links. go test caches results
// by the files that the test itself opens, not by those that its compiler opens. Without this, the test of a changed
// package would not run again.
func touchFolders(t testing.TB, dir, pkg string) {
	t.Helper()
	folders := runGo(t, dir, pkg, "list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}")
	for _, folder := range append(strings.Fields(folders), dir) {
		if _, err := os.ReadDir(folder); err != nil {
			t.Fatal(err)
		}
	}
}
