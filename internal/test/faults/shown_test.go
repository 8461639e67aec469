package faults

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatIsNamedExists: each test that the documentation of the package names is one of this module.
func TestWhatIsNamedExists(t *testing.T) {
	text, err := os.ReadFile("faults.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(text), "\npackage ")
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(doc, -1)
	if len(names) < 10 {
		t.Fatalf("only %d tests are named", len(names))
	}
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	root := os.DirFS(filepath.Join("..", "..", ".."))
	for _, folder := range []string{"applier", "controller", "internal/test"} {
		err := fs.WalkDir(root, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			for name := range missing {
				if strings.Contains(string(text), "\nfunc "+name+"(") {
					delete(missing, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range missing {
		t.Errorf("there is no %s", name)
	}
}
