package contributing

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// addsController is where a controller is added, by its name.
	addsController = regexp.MustCompile(`New(?:Host)?Controller\("([a-z]+)"`)
	// controllerRow is a row of the table of controllers in docs/architecture.md.
	controllerRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `(controller[a-z/]*)` \\|")
)

func architecture(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheArchitectureListsAllControllers(t *testing.T) {
	added := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), "controller", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(root), name)
		for _, m := range addsController.FindAllStringSubmatch(string(text), -1) {
			if added[m[1]] = path.Dir(name); m[1] != path.Base(path.Dir(name)) {
				t.Errorf("%s adds a controller of another name than its package: %s", name, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range controllerRow.FindAllStringSubmatch(architecture(t), -1) {
		listed = append(listed, m[1])
		if added[m[1]] != m[2] {
			t.Errorf("docs/architecture.md lists the controller %s, which nothing in %s adds", m[1], m[2])
		}
	}
	for name := range added {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/architecture.md does not list the controller %s", name)
		}
	}
}
