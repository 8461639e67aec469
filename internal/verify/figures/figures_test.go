package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFigures counts a small tree, twice: the second time beside the figures of the first.
func TestFigures(t *testing.T) {
	tree := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(tree, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module small\n\ngo 1.26\n")
	write("cmd/wmco/main.go", "package main\n\nimport \"small/a\"\n\nfunc main() { a.IsReady(a.Lines) }\n")
	write("cmd/wmco-node/main.go", "package main\n\nimport \"small/a\"\n\nfunc main() { a.IsReady(1) }\n")
	write("a/a.go", "package a\n\n// Lines says what is.\nconst Lines = 1 // "+strings.Repeat("x", 120)+"\n\nfunc IsReady(int) bool { return true }\n")
	write("a/a_windows.go", "package a\n")
	write("a/a_test.go", "package a\n\nfunc decide(a, b, c, d, e, f bool) bool {\n\treturn a && b && c || d && e && f || a && c && e || b && d && f\n}\n")
	write("internal/b/b.go", "package b\n\nfunc decide(a, b, c, d, e, f bool) bool {\n\treturn a && b && c || d && e && f || a && c && e || b && d && f\n}\n")
	write("golden/g.txt", "1\n2\n")
	write("docs/a.md", "Nobody reads.\n")
	write(".ci/keep", "")
	if out, err := exec.CommandContext(t.Context(), "git", "-C", tree, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", tree, "add", "--all").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got bytes.Buffer
	if err := run(t.Context(), tree, options{}, &got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"11 lines linked into wmco for linux", "12 lines linked into wmco-node for windows", "17 lines linked into either",
		"7 lines of product in a", "5 lines of tests in a", "5 lines of product in internal/b", "22 lines of product in all", "3.7 percent of lines over 120 columns", "0.0 percent of lines over 150 columns",
		"7.0 letters of a name of a function, in the mean, in a", "0.0 percent of these names are one word, in a", "100.0 percent of these names are one word, in cmd/wmco",
		"1 functions with ten or more branches and 0.6 a line", "2 lines below golden", "2 words in pages", "1 lines with says or said", "1 lines with what is",
		"1 lines with nobody, somebody, meanwhile, stands on or by itself",
	} {
		if !hasLine(got.String(), want) {
			t.Errorf("no line %q in\n%s", want, got.String())
		}
	}
	if err := run(t.Context(), tree, options{update: true}, &got); err != nil {
		t.Fatal(err)
	}
	write("golden/g.txt", "1\n2\n3\n")
	got.Reset()
	if err := run(t.Context(), tree, options{changes: true}, &got); err != nil {
		t.Fatal(err)
	}
	if text := got.String(); !hasLine(text, "3 was 2 lines below golden") || strings.Count(text, "\n") != 1 {
		t.Errorf("got\n%s", text)
	}
}

// hasLine reports whether a text has a line, whatever the space between its words.
func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.Join(strings.Fields(line), " ") == want {
			return true
		}
	}
	return false
}
