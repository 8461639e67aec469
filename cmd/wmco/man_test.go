package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/internal/build/pages"
)

// manualTo is the folder that make release has the manual pages written to.
var manualTo = flag.String("manual", "", "folder to write the manual pages to")

// Each command that people call has a manual page with the text of its help, and the same source gives the same bytes.
func TestManualPages(t *testing.T) {
	if *manualTo != "" {
		if err := pages.WriteManual(*manualTo, rootCommand(app{})); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1764201600") // 2025-11-27
	first, second := filepath.Join(t.TempDir(), "man"), filepath.Join(t.TempDir(), "man")
	for _, dir := range []string{first, second} {
		if err := pages.WriteManual(dir, rootCommand(app{})); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	for _, cmd := range rootCommand(app{}).Commands() {
		name := filepath.Join(first, "wmco-"+cmd.Name()+".1")
		text, err := os.ReadFile(name)
		if cmd.Hidden || cmd.Name() == "help" {
			if err == nil {
				t.Errorf("%s has a manual page", cmd.Name())
			}
			continue
		}
		again, other := os.ReadFile(filepath.Join(second, filepath.Base(name)))
		if err != nil || other != nil || string(text) != string(again) {
			t.Errorf("%s: %v, %v, %d and %d bytes", cmd.Name(), err, other, len(text), len(again))
		}
		if !strings.HasPrefix(string(text), ".nh\n.TH") || !strings.Contains(string(text), "Nov 2025") || !strings.Contains(string(text), strings.Split(cmd.Short, " ")[0]) {
			t.Errorf("%s begins with %.200s", cmd.Name(), text)
		}
		count++
	}
	if count < 15 {
		t.Errorf("%d pages", count)
	}
}
