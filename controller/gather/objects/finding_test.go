package objects_test

import (
	"strings"
	"testing"
)

// TestOneFindingPerMalformedFile reads files in which one mistake, or several, make many objects unreadable.
func TestOneFindingPerMalformedFile(t *testing.T) {
	bad := "kind: Node\napiVersion: v1\nmetadata: {name: a\n---\n"
	for count, want := range map[int]int{1: 0, 2: 1, 5: 4, 9: 5} {
		set := read(t, folder(t, map[string]string{"f.yaml": strings.Repeat(bad, count), "g.yaml": bad}), []string{"."}, nil, someWants())
		if len(set.Findings) != 2 || strings.Count(set.Findings[0].Message, "; ") != want {
			t.Errorf("%d objects: %s\n%+v", count, printed(set), set.Findings)
		}
		if more := strings.HasSuffix(set.Findings[0].Message, "; and 4 more"); more != (count == 9) {
			t.Errorf("%d objects: %s", count, set.Findings[0].Message)
		}
	}
}
