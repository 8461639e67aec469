package contributing

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// matches returns the first group of each match in a file of the tree.
func matches(t *testing.T, file, pattern string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(data), -1) {
		found = append(found, m[1])
	}
	return found
}

// TestTheWorkflowRunsEveryStep: what runs on a real Windows is what hack/windows-steps runs without arguments, in the same order.
func TestTheWorkflowRunsEveryStep(t *testing.T) {
	list := matches(t, "hack/windows-steps", `(?s)\nall=\((.*?)\)\n`)
	if len(list) != 1 {
		t.Fatalf("%d lists of steps", len(list))
	}
	steps := strings.Fields(list[0])
	if diff := cmp.Diff(steps, matches(t, ".github/workflows/windows.yml", `run: hack/windows-steps (\S+)\n`)); diff != "" {
		t.Errorf("(-hack/windows-steps +windows.yml):\n%s", diff)
	}
	payload := []string{"payload-build"}
	for _, name := range matches(t, "internal/test/winsteps/cmd/payload/main.go", `\{"([a-z]+)", [a-zA-Z]+\}`) {
		payload = append(payload, "payload-"+name)
	}
	if diff := cmp.Diff(payload, steps[len(steps)-len(payload):]); diff != "" {
		t.Errorf("(-internal/test/winsteps/cmd/payload +hack/windows-steps):\n%s", diff)
	}
}

// TestTheWorkflowBuildsTheExecutables: of the payload, the workflow builds every executable but those that stay stand-ins on a machine without
// a cluster.
func TestTheWorkflowBuildsTheExecutables(t *testing.T) {
	list := matches(t, ".github/workflows/windows.yml", `run: make payload PAYLOAD=(\S+)\n`)
	if len(list) != 1 {
		t.Fatalf("%d builds of the payload", len(list))
	}
	for _, component := range strings.Split(list[0], ",") {
		if _, err := os.Stat(filepath.Join(root, "payload", component, "go.mod")); err != nil {
			t.Errorf("%s is no component: %v", component, err)
		}
	}
}
