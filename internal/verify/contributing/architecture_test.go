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
	// controllerRow and packageRow are rows of the tables of docs/architecture.md.
	controllerRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `(controller[a-z/]*)` \\|")
	packageRow    = regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9/*-]+`(?:, )?)+) \\|[^|]*\\|$")
	code          = regexp.MustCompile("`([^`]+)`")
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

// TestTheArchitectureListsThePackagesThatExist looks at the folders of the product, one by one.
func TestTheArchitectureListsThePackagesThatExist(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range packageRow.FindAllStringSubmatch(architecture(t), -1) {
		before := ""
		for _, m := range code.FindAllStringSubmatch(row[1], -1) {
			name := m[1]
			if before != "" && !strings.Contains(name, "/") {
				name = path.Join(path.Dir(before), name) // the rest of a row is in the same folder
			}
			if !strings.Contains(name, "*") {
				if info, err := os.Stat(filepath.Join(root, name)); err != nil || !info.IsDir() {
					t.Errorf("docs/architecture.md lists %s, which is no folder", name)
				}
			}
			before, listed[name] = name, true
		}
	}
	for _, folder := range []string{"bundle", "render", "controller", "applier"} {
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !listed[path.Dir(name)]:
				t.Errorf("docs/architecture.md does not list %s, with %s", path.Dir(name), path.Base(name))
				listed[path.Dir(name)] = true // said once
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
