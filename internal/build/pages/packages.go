package pages

import (
	"errors"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// packagesBegin and packagesEnd enclose the lists of packages in architecture.md. The rest of the page is written by hand.
const (
	packagesBegin = "<!-- packages: generated from the package comments by make generate -->\n"
	packagesEnd   = "<!-- end of packages -->\n"
)

// packageGroup is one list of packages. A name that ends in /... stands for the packages below it that no group names: they are listed by name alone.
type packageGroup struct {
	title string
	names []string
	// isIndex is true for a group whose packages are all listed by name alone: people who use the product do not meet them.
	isIndex bool
}

// packageGroups are all packages in the order of the data: from the objects of a cluster to a host.
func packageGroups() []packageGroup {
	return []packageGroup{
		{"Cluster objects to inputs", []string{"controller/gather/objects", "controller/gather", "controller/gather/...", "controller/inputs/desired", "render/yamltext"}, false},
		{"Inputs to a bundle", []string{"render", "render/mirrors", "render/kubelets", "render/...", "templates", "payload", "payload/store", "payload/sources", "payload/fetch", "layout"}, false},
		{"The bundle", []string{"bundle", "bundle/archive", "bundle/published", "bundle/nodestate", "bundle/reason"}, false},
		{"Previews and reports", []string{"render/preview", "render/review", "report/...", "controller/fleet"}, false},
		{"Rollout", []string{
			"controller/inputs", "controller/inputs/...", "controller/layers", "controller/keys/signing", "controller/rollout", "controller/rollout/plan", "controller/rollout/steps",
			"controller/windowsnode", "controller/windowsnode/nodelist", "controller/windowsnode/...", "controller/status", "controller/metrics",
		}, false},
		{"Joining, upgrade and removal of hosts", []string{
			"preflight", "render/machines", "controller/hosts", "controller/keys", "controller/keys/username", "controller/configure", "controller/configure/checks",
			"controller/machine", "controller/instance", "controller/node", "controller/...",
		}, false},
		{"The operator's process", []string{"controller", "controller/base", "controller/base/..."}, false},
		{"The host", []string{"applier", "applier/protocol", "applier/plan", "applier/records", "applier/agent", "applier/agent/...", "applier/winhost", "applier/winhost/...", "applier/remote", "applier/remote/ssh", "applier/..."}, false},
		{"Images that hosts files cannot route", []string{"gateway/places", "gateway", "gateway/registry", "gateway/signatures", "payload/image-verifier", "gateway/identity"}, false},
		{"Programs and manifests", []string{"cmd/wmco", "cmd/wmco-node", "internal/nodecli", "internal/cli", "docs", "deploy/..."}, false},
		{"Tests", []string{"internal/golden", "internal/hostsim", "internal/hostsim/...", "internal/test/..."}, true},
		{"Checks", []string{"internal/verify/..."}, true},
		{"Builds", []string{"internal/build/...", "tools/..."}, true},
	}
}

// testHelpers are small packages that tests share. They have no rows.
func testHelpers() []string {
	return []string{
		"applier/winhost/keepertest", "internal/build/examplecerts", "internal/hostsim/bundletest", "internal/hostsim/fixtures", "internal/test/blocked", "internal/test/faults",
		"internal/test/network", "internal/test/publishtest", "internal/test/seed", "internal/test/shards", "render/mirrors/mirrorstest",
	}
}

// architecture is architecture.md with the lists of today.
func architecture(tree string) (string, error) {
	text, err := os.ReadFile(filepath.Join(tree, "docs", "architecture.md"))
	if err != nil {
		return "", err
	}
	before, rest, begins := strings.Cut(string(text), packagesBegin)
	_, after, ends := strings.Cut(rest, packagesEnd)
	if !begins || !ends {
		return "", errors.New("docs/architecture.md lacks the marks of the lists of packages")
	}
	lists, err := packageLists(os.DirFS(tree))
	return before + packagesBegin + lists + packagesEnd + after, err
}

func packageLists(tree fs.FS) (string, error) {
	sentences, err := packageSentences(tree)
	if err != nil {
		return "", err
	}
	for _, name := range testHelpers() {
		delete(sentences, name)
	}
	groups := packageGroups()
	var named []string
	for _, g := range groups {
		named = append(named, g.names...)
	}
	var out strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&out, "\n### %s\n\n", g.title)
		var index []string
		for _, name := range g.names {
			for _, found := range packagesOf(name, sentences, named) {
				if g.isIndex || found != name {
					index = append(index, "`"+found+"`")
				} else {
					fmt.Fprintf(&out, "* `%s` %s\n", found, sentences[found])
				}
				delete(sentences, found)
			}
		}
		switch {
		case g.isIndex:
			out.WriteString(strings.Join(index, ", ") + "\n")
		case len(index) > 0:
			out.WriteString("* also " + strings.Join(index, ", ") + "\n")
		}
	}
	for name := range sentences {
		err = errors.Join(err, fmt.Errorf("%s: add it to packageGroups (internal/build/pages)", name))
	}
	out.WriteString("\n")
	return out.String(), err
}

// packagesOf returns the packages that a name of a group stands for, sorted.
func packagesOf(name string, sentences map[string]string, named []string) []string {
	below, all := strings.CutSuffix(name, "...")
	if !all {
		return []string{name}
	}
	var found []string
	for p := range sentences {
		if strings.HasPrefix(p, below) && !slices.Contains(named, p) && isNearest(name, p, named) {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found
}

// isNearest reports whether no other pattern has a longer match.
func isNearest(name, p string, named []string) bool {
	return !slices.ContainsFunc(named, func(other string) bool {
		below, all := strings.CutSuffix(other, "...")
		return all && len(other) > len(name) && strings.HasPrefix(p, below)
	})
}

// packageSentences returns the first sentence of each package comment, by folder: of the product, and below internal of packages that are not part of
// another one.
func packageSentences(tree fs.FS) (map[string]string, error) {
	sentences := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name == "bin" || name == "dist" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() && (d.Name() == "cmd" || d.Name() == "standins" || strings.Count(name, "/") == 3) && path.Dir(name) != "." && !isProduct(name):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "zz_"):
			return nil
		}
		sentence, err := packageSentence(tree, name)
		folder := path.Dir(name)
		if have, ok := sentences[folder]; sentence != "" || !ok {
			sentences[folder] = strings.TrimPrefix(have+"; "+sentence, "; ")
		}
		return err
	})
	for folder, sentence := range sentences {
		if sentence == "" {
			err = errors.Join(err, fmt.Errorf("%s has no package comment", folder))
		}
	}
	return sentences, err
}

func isProduct(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return top != "internal" && top != "deploy"
}

// packageSentence returns the first sentence of the package comment in a file, up to a colon and without the name of the package; "" where the file has
// none.
func packageSentence(tree fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return "", err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || file.Doc == nil {
		return "", err
	}
	sentence := new(doc.Package).Synopsis(file.Doc.Text())
	first, rest, _ := strings.Cut(sentence, " ")
	if first == "Package" || first == "Command" {
		_, rest, _ = strings.Cut(rest, " ")
	}
	rest, _, _ = strings.Cut(rest, ": ")
	return strings.TrimRight(rest, ".:"), nil
}
