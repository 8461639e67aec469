package tested

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheREADMEHasTheSentence holds the README to the results.
func TestTheREADMEHasTheSentence(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	results, err := ReadResults(filepath.Join(root, "golden", "real"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(string(readme)), " "); !strings.Contains(text, SummarizeResults(results)) {
		t.Errorf("the README does not say %q", SummarizeResults(results))
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tested.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != ResultsPage(results) {
		t.Error("docs/tested.md is out of date: make generate")
	}
}

func TestAResultIsInTheTable(t *testing.T) {
	folder := t.TempDir()
	text := `{"schema": 1, "started": "2026-12-01T10:00:00Z", "passed": 0, "failed": 1, "system": {"osBuild": "10.0.20348.1", "edition": "ServerStandard Server"}, "clauses": [{"clause": "Stat of no paths returns nothing", "status": "failed"}]}`
	if err := os.WriteFile(filepath.Join(folder, "10.0.20348.1.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	results, err := ReadResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	page := ResultsPage(results)
	for _, want := range []string{
		"| Windows 10.0.20348.1, ServerStandard Server | the self-test |", "| 2026-12-01 | 0 passed, 1 failed, 0 skipped |\n",
		"| reading: Stat of no paths returns nothing | failed |", "| reading: Stat keeps the order of the paths | not asked |",
		"| an HNS endpoint is made and removed; an HNS network is removed and never made | Wine has no HNS; networks.TestEndpoints |\n", SummarizeResults(results),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if SummarizeResults(results) == SummarizeResults(nil) {
		t.Error("a result changes no sentence")
	}
}
