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
	touch(t, dir, pkg)
	golang(t, dir, pkg, "build", "-o", p.Path(windows))
}

// Program is a program of the module in dir, built for Windows.
func Program(t testing.TB, dir, pkg string) []byte {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program.exe")
	touch(t, dir, pkg)
	golang(t, dir, pkg, "build", "-trimpath", "-ldflags=-s -w", "-o", exe)
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Test builds the tests of a package of the module in dir for Windows, without what is in testdata, and runs them. It
// returns how each of them ended, subtests too: pass, fail or skip.
func (p *Prefix) Test(t testing.TB, dir, pkg string) map[string]string {
	t.Helper()
	const exe = `C:\k\package.test.exe`
	if err := p.mkdir(exe); err != nil {
		t.Fatal(err)
	}
	touch(t, dir, pkg)
	golang(t, dir, pkg, "test", "-c", "-o", p.Path(exe))
	r := p.Run(t, Command{Path: exe, Args: []string{"-test.v=test2json"}, Dir: `C:\k`})
	results, failures := ended(t, r.Stdout)
	if r.ExitCode != 0 {
		t.Errorf("exit code %d:\n%s%s", r.ExitCode, failures, r.Stderr)
	}
	return results
}

// ended reads what go test prints: how each test ended, and what those printed that did not pass, the package itself
// among them.
func ended(t testing.TB, printed string) (results map[string]string, failures string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "test2json")
	cmd.Stdin = strings.NewReader(printed)
	events, err := cmd.Output()
	if err != nil {
		t.Fatalf("reading what the tests printed: %v", err)
	}
	results = map[string]string{}
	output := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(events)); ; {
		var e struct{ Action, Test, Output string }
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return results, failed(results, output)
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

// failed joins what tests printed that did not pass, by name. One that was cut has no result.
func failed(results, output map[string]string) string {
	var all strings.Builder
	for _, test := range slices.Sorted(maps.Keys(output)) {
		if result := results[test]; result != "pass" && result != "skip" {
			all.WriteString(output[test])
		}
	}
	return all.String()
}

// golang runs the go command of this machine for a package, for Windows.
func golang(t testing.TB, dir, pkg string, args ...string) string {
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

// touch opens the folders of a package and of what it links of its module. The cache of go test sees what a test opens,
// and nothing that the compiler of a test does: without this, a test of a changed package would not run again.
func touch(t testing.TB, dir, pkg string) {
	t.Helper()
	folders := golang(t, dir, pkg, "list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}")
	for _, folder := range append(strings.Fields(folders), dir) {
		if _, err := os.ReadDir(folder); err != nil {
			t.Fatal(err)
		}
	}
}
