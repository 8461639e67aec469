package contributing

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// treePath is a path of this repository in a text: at its beginning stands a folder of the root, before it no other path. %s are these folders.
	treePath = regexp.MustCompile(`(?:^|[^\w./$@:%{}*<-])((?:applier|bundle|cmd|controller|deploy|docs|golden|hack|internal|layout|payload|preflight|render|report|templates|tools)(?:/[\w.-]+)+)`)
	// symbol is a name that a package exports, and what follows it.
	symbol = regexp.MustCompile(`\.[A-Z]\w*.*$`)
)

// pathsOfOthers begin paths of other projects that texts name without their repository, and of examples.
var pathsOfOthers = []string{
	"golden/cases/none-my-change",
	"bundle/manifests", "cmd/go/", "cmd/kubelet/", "docs/design/", "docs/hosts.md", "docs/metrics/", "internal/cri/", "internal/operator-controller/",
	"templates/common", "templates/worker/", "tools/cache/", "tools/record",
}

// TestPackagesThatAreNamedExist: a package or a file that a page, a comment of Go, YAML or make, or a script names is in the tree.
func TestPackagesThatAreNamedExist(t *testing.T) {
	tree := os.DirFS(root)
	names := treeNames(t, tree)
	for _, name := range names {
		text, err := textWithNames(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, missing := range missingPaths(name, text, names) {
			t.Errorf("%s names %s, which does not exist", name, missing)
		}
	}
}

func TestMissingPackagesAreFound(t *testing.T) {
	names := []string{"applier", "applier/plan", "applier/plan/plan.go", "docs/decisions/0001-a.md", "payload/kubernetes-1.31", "cmd/x"}
	text := "See applier/plan, applier/plan.Plan, `applier/plan/plan.go`: docs/decisions/0001, payload/kubernetes-<minor>, k8s.io/x/applier/y, cmd/kubelet/app, " +
		"applier/gone (applier/plan/no.go) and internal/gone.Symbol."
	want := []string{"applier/gone", "applier/plan/no.go", "internal/gone.Symbol"}
	if got := missingPaths("docs/x.md", text, names); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// treeNames are the folders and files of the repository, without build output and goldens.
func treeNames(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "node_modules"}, name) {
			return fs.SkipDir
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// textWithNames returns what of a file names packages: all of a page and of a script, the comments of other files.
func textWithNames(tree fs.FS, name string) (string, error) {
	comment := "#"
	switch {
	case strings.Contains(name, "testdata/") || strings.HasPrefix(name, "golden/") && path.Base(name) != "README.md":
		return "", nil
	case path.Ext(name) == ".go":
		comment = "//"
	case path.Ext(name) == ".md":
		comment = ""
	case !slices.Contains([]string{".yaml", ".yml", ".mk", ".sh"}, path.Ext(name)) && name != "Makefile" && (path.Dir(name) != "hack" || path.Ext(name) != ""):
		return "", nil
	}
	if info, err := fs.Stat(tree, name); err != nil || info.IsDir() {
		return "", err
	}
	data, err := fs.ReadFile(tree, name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if at := strings.Index(line, comment); at >= 0 {
			out.WriteString(line[at+len(comment):])
		}
	}
	return out.String(), nil
}

// missingPaths returns the paths in the text of a file that are neither in the tree nor in the folder of the file. The first part of a name
// (docs/decisions/0004) is enough.
func missingPaths(file, text string, names []string) []string {
	var missing []string
	for _, m := range treePath.FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(m[1], ".-")
		plain := symbol.ReplaceAllString(name, "")
		other := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		there := func(have string) bool {
			return have == plain || have == path.Join(path.Dir(file), plain) || strings.HasPrefix(have, plain+"-")
		}
		if !slices.ContainsFunc(pathsOfOthers, other) && !slices.ContainsFunc(names, there) {
			missing = append(missing, name)
		}
	}
	return missing
}
