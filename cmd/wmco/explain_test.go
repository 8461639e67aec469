package main

import (
	"strings"
	"testing"
)

// TestExplainNamesThePageOfARelease, and of nothing else.
func TestExplainNamesThePageOfARelease(t *testing.T) {
	defer func(before string) { sourceTree = before }(sourceTree)
	for _, tree := range []string{"", "https://example.com/blob/v1"} {
		sourceTree = tree
		status, out, stderr := runLine(t, "explain turnpostponed")
		if status != 0 {
			t.Fatal(stderr)
		}
		if has := strings.Contains(out, "  see https://example.com/blob/v1/docs/reasons.md#turnpostponed\n"); has != (tree != "") {
			t.Errorf("with %q: %s", tree, out)
		}
	}
}
