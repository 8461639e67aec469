package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runBy and notRun are the comments before a block of commands.
var (
	runBy  = regexp.MustCompile(`^<!-- run by (Test\w+)(?:, but for \w.{10,})? -->$`)
	notRun = regexp.MustCompile(`^<!-- not run: \w.{20,} -->$`)
)

// followedPages are the pages whose commands tests run, with how many blocks they have at least.
func followedPages() map[string]int {
	return map[string]int{"takeover.md": 12, "okd.md": 7, "disconnected.md": 4, "keys.md": 4, "workloads.md": 1, "platforms/none.md": 2, "platforms/vsphere.md": 5}
}

// TestEachCommandOfAFollowedPageIsRun: before each block of commands the page names the test that runs it, or why none does. The test is there, and
// reads the page.
func TestEachCommandOfAFollowedPageIsRun(t *testing.T) {
	tests := testsOfThePage(t)
	for page, least := range followedPages() {
		t.Run(page, func(t *testing.T) { checkBlocks(t, page, tests, least) })
	}
}

func checkBlocks(t *testing.T, page string, tests map[string]bool, least int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, inside, fenced, last := 0, false, false, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		command := strings.HasPrefix(line, "    ") && !fenced
		if command && !inside {
			blocks++
			switch named := runBy.FindStringSubmatch(last); {
			case named == nil && !notRun.MatchString(last):
				t.Errorf("before %q stands neither which test runs it nor why none does", strings.TrimSpace(line))
			case named != nil && !tests[named[1]]:
				t.Errorf("%q names %s, which is no test that reads the page", strings.TrimSpace(line), named[1])
			}
		}
		inside = command
		if line != "" && !command {
			last = strings.TrimSpace(line)
		}
	}
	if blocks < least {
		t.Errorf("only %d blocks were found", blocks)
	}
}

// testsOfThePage returns the tests in files that run blocks of a document.
func testsOfThePage(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../internal/test/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	function, all := regexp.MustCompile(`(?m)^func (Test\w+)\(`), map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(".block(")) {
			continue
		}
		for _, m := range function.FindAllSubmatch(text, -1) {
			all[string(m[1])] = true
		}
	}
	return all
}
