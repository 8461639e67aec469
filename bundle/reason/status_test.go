package reason

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
		"controller/configure": reasons, "controller/machine": reasons, "controller/status": reasons, "controller/prerequisites": reasons, "controller/rollout/plan": reasons, "controller/fleet": reasons,
		"bundle/published": `(?m)^\s*(?:State\w+ State|ReasonNotFetched) = "(\w+)"`,
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
		if e, _, ok := Find(name); !ok || e.Meaning == "" || e.Fix == "" {
			t.Errorf("%s is not explained: %+v", name, e)
		}
	}
	seen := map[string]bool{}
	for _, r := range Status() {
		if !slices.Contains(defined, r.Reason) || seen[r.Reason] {
			t.Errorf("%s is in no status, or is explained twice", r.Reason)
		}
		seen[r.Reason] = true
	}
}

// TestAReasonOfSeveralPlaces: Find returns the same entry each time, that of a finding before that of a status, and this before that of an Event.
func TestAReasonOfSeveralPlaces(t *testing.T) {
	for range 20 { // the places were in a map, whose order changes
		for name, want := range map[string]string{"sshserverstopped": "status", "ClockSkew": "error or warning", "LayerReplaced": "event"} {
			if _, where, _ := Find(name); where != want {
				t.Fatalf("%s is explained as of %q, want %q", name, where, want)
			}
		}
	}
}
