package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/internal/cli"
)

// Every page of the folder is in the program, under a name that the list has, and is printed as it is in the folder, without comments.
func TestDocsPrintsEachPage(t *testing.T) {
	root := filepath.Join("..", "..", "docs")
	var files []string
	for _, pattern := range []string{"*.md", "gitops/*.md", "platforms/*.md", "runbooks/*.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	names := pageNames()
	if len(files) < 30 || len(names) != len(files) {
		t.Fatalf("%d pages in the program, %d in the folder", len(names), len(files))
	}
	code, list, _ := runLine(t, "docs")
	if code != cli.ExitDone {
		t.Fatalf("docs: %d", code)
	}
	for _, file := range files {
		relative, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		name := pageName(filepath.ToSlash(relative))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := withoutComments(string(text))
		for _, page := range []string{name, "docs/" + filepath.ToSlash(relative) + "#a-section"} {
			if code, got, _ := runLine(t, "docs "+page); code != cli.ExitDone || got != want {
				t.Errorf("docs %s: %d, %d bytes, not the %d of %s", page, code, len(got), len(want), file)
			}
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(want, "# "), "\n")
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+" ") && strings.HasSuffix(line, "  "+title)
		}) {
			t.Errorf("the list lacks %s, %q", name, title)
		}
	}
}

// withoutComments drops lines that are comments, and an empty line after each.
func withoutComments(text string) string {
	var kept []string
	after := false
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		comment := strings.HasPrefix(trimmed, "<!--") && strings.HasSuffix(trimmed, "-->")
		if !comment && (!after || line != "") {
			kept = append(kept, line)
		}
		after = comment
	}
	return strings.Join(kept, "\n")
}

func TestDocsFindsAPageByItsLastPart(t *testing.T) {
	_, want, _ := runLine(t, "docs platforms/vsphere")
	if code, got, _ := runLine(t, "docs vSphere"); code != cli.ExitDone || got != want || got == "" {
		t.Errorf("docs vSphere: %d, %d bytes", code, len(got))
	}
	code, _, errors := runLine(t, "docs mirors")
	if code != cli.ExitUsage || !strings.Contains(errors, "did you mean mirrors?") {
		t.Errorf("docs mirors: %d, %s", code, errors)
	}
}
