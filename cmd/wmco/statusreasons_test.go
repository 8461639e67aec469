package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sourcesOfReasons are the packages that define what stands in status, with the pattern of their constants.
func sourcesOfReasons() map[string]string {
	const reasons = `(?m)^\s*(?:const )?Reason\w+\s+(?:Reason )?= "(\w+)"`
	return map[string]string{
		"controller/configure": reasons, "controller/status": reasons, "controller/prerequisites": reasons, "controller/rollout/plan": reasons, "controller/fleet": reasons,
		"bundle/published": `(?m)^\s*State\w+ State = "(\w+)"`,
	}
}

// definedReasons are the reasons that a package defines.
func definedReasons(t *testing.T, folder, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(name, "_test.go") {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// TestEachReasonOfTheStatusIsExplained, and none that does not exist, or twice.
func TestEachReasonOfTheStatusIsExplained(t *testing.T) {
	var defined []string
	for folder, pattern := range sourcesOfReasons() {
		names := definedReasons(t, folder, pattern)
		if len(names) == 0 {
			t.Errorf("no reasons are found in %s", folder)
		}
		defined = append(defined, names...)
	}
	for _, name := range defined {
		if x, ok, err := explained(name); err != nil || !ok || x.Meaning == "" || x.Fix == "" {
			t.Errorf("wmco explain %s: %+v, %v", name, x, err)
		}
	}
	seen := map[string]bool{}
	for _, r := range statusReasons() {
		if !slices.Contains(defined, r.name) || seen[r.name] {
			t.Errorf("%s stands in no status, or is explained twice", r.name)
		}
		seen[r.name] = true
	}
}
