package contributing

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// lifeConstant is a state of a node's life, lifeRow a row of its table in docs/architecture.md.
	lifeConstant = regexp.MustCompile(`(?m)^\tLife[A-Z][A-Za-z]+ Life = "([A-Za-z]+)"$`)
	lifeRow      = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|.*$")
)

// TestEachStateOfANodeHasAWayOut: a row with what ends it, and a test that shows it.
func TestEachStateOfANodeHasAWayOut(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "controller", "windowsnode", "life.go"))
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, m := range lifeConstant.FindAllStringSubmatch(string(source), -1) {
		states = append(states, m[1])
	}
	_, part, found := strings.Cut(architecture(t), "\n## The life of a node\n")
	if !found || len(states) < 5 {
		t.Fatalf("the part of docs/architecture.md is there: %t; states %q", found, states)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var rows []string
	for _, m := range lifeRow.FindAllStringSubmatch(part, -1) {
		rows = append(rows, m[1])
		if checkTestsOfTables(t, m[0]) == 0 {
			t.Errorf("the row of %s names no test", m[1])
		}
	}
	if !slices.Equal(rows, states) {
		t.Errorf("docs/architecture.md has rows for %q, controller/windowsnode has the states %q", rows, states)
	}
}
