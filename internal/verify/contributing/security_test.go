package contributing

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// testName is a test that docs/security.md names, testedPackage the package before it.
	testName      = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+`)
	testedPackage = regexp.MustCompile("`([a-z][a-z0-9/-]*)`")
)

func TestTheTestsOfTheSecurityPageExist(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	if count := checkTestsOfTables(t, string(data)); count < 30 {
		t.Errorf("the page names %d tests", count)
	}
}

// checkTestsOfTables fails for each test of a line, in a table of its last column, that does not exist, and returns how many there are.
func checkTestsOfTables(t *testing.T, text string) int {
	t.Helper()
	count := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := cells[len(cells)-1]
		for _, part := range strings.Split(last, ";") {
			for _, of := range testsOf(part) {
				count++
				if !isTest(t, of[0], of[1]) {
					t.Errorf("%s has no test %s", of[0], of[1])
				}
			}
		}
	}
	return count
}

// testsOf returns the tests of a text, each with the package before it.
func testsOf(text string) [][2]string {
	var list [][2]string
	name := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == ':' }) {
		if m := testedPackage.FindStringSubmatch(word); m != nil {
			name = m[1]
		}
		if m := testName.FindString(word); m != "" {
			list = append(list, [2]string{name, m})
		}
	}
	return list
}

func isTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
