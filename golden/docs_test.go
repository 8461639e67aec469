package golden

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/internal/golden"
)

const registriesFolder = "win-a/C/k/containerd/registries/"

var (
	fenced   = regexp.MustCompile("(?s)```(yaml|toml)\n(.*?)```")
	findings = regexp.MustCompile("(?m)^Findings: (.*)$")
	mention  = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
)

// TestExamplesOfTheMirrorsPage renders each example of docs/mirrors.md and compares the page with every hosts file and
// finding.
func TestExamplesOfTheMirrorsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/mirrors.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(page), "<!-- example -->\n")[1:]
	if len(examples) < 4 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, text := range examples {
		checkExample(t, untilHeading(text))
	}
}

// untilHeading returns an example up to the next heading of the page; a comment in a block is no heading.
func untilHeading(text string) string {
	for _, heading := range []string{"\n## ", "\n### "} {
		if i := strings.Index(text, heading); i >= 0 {
			text = text[:i]
		}
	}
	return text
}

func checkExample(t *testing.T, text string) {
	t.Helper()
	want := map[string]string{}
	dir := t.TempDir()
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == "yaml" {
			if err := os.WriteFile(filepath.Join(dir, "example.yaml"), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		path, content, _ := strings.Cut(block[2], "\n")
		path = strings.ReplaceAll(strings.TrimPrefix(path, `# C:\k\containerd\registries\`), `\`, "/")
		want[registriesFolder+path] = content
	}
	base := mustAbs(t, "clusters")
	c := golden.Case{From: []string{filepath.Join(base, "common"), filepath.Join(base, "none"), filepath.Join(dir, "example.yaml")}, Nodes: []string{"win-a"}}
	tree, found := renderTree(t, "", c)
	got := map[string]string{}
	for path, data := range tree {
		if strings.HasPrefix(path, registriesFolder) {
			got[path] = string(data)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts files (-page +rendered):\n%s", diff)
	}
	var said, reasons []string
	if line := findings.FindStringSubmatch(text); line != nil {
		for _, m := range mention.FindAllStringSubmatch(line[1], -1) {
			said = append(said, m[1])
		}
	}
	for _, f := range found {
		if aboutMirrors(f.Reason) && !slices.Contains(reasons, f.Reason) {
			reasons = append(reasons, f.Reason)
		}
	}
	slices.Sort(reasons)
	if diff := cmp.Diff(said, reasons); diff != "" {
		t.Errorf("findings (-page +rendered):\n%s", diff)
	}
}

func aboutMirrors(reason string) bool {
	return !slices.Contains([]string{"DefaultsAssumed", "FactsUnknown", "Replaced", "NodeImageNotMirrored"}, reason)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
