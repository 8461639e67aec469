package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// countPackages counts the folders directly under controller/ and the imports between them. A folder is on the floor above the highest one
// that it imports, as far as that is not a circle.
func countPackages(sources []source) []row {
	imports := map[string]map[string]bool{}
	for _, s := range sources {
		if !s.isBelow("controller") {
			continue
		}
		from := room(path.Dir(s.path))
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, i := range s.imports() {
			if to := room(i); to != "" && to != from {
				imports[from][to] = true
			}
		}
	}
	arrows, floors, floorOf := 0, 0, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		arrows += len(imports[name])
		floors = max(floors, floor(name, imports, floorOf))
	}
	return []row{
		{"folders directly under controller/, and its root", fmt.Sprint(len(imports))},
		{"floors of these, the ground is 1", fmt.Sprint(floors)},
		{"imports between these", fmt.Sprint(arrows)},
	}
}

// room returns the folder directly under controller/ that a package is in, empty if it is elsewhere.
func room(folder string) string {
	parts := strings.Split(folder, "/")
	if parts[0] != "controller" {
		return ""
	}
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

func floor(name string, imports map[string]map[string]bool, known map[string]int) int {
	if at, ok := known[name]; ok {
		return at
	}
	known[name] = 1 // while it is on the way: folders may import each other, packages do not
	highest := 0
	for to := range imports[name] {
		highest = max(highest, floor(to, imports, known))
	}
	known[name] = highest + 1
	return highest + 1
}

// countRoot counts what stands in controller/ itself, and the test hosts in folders of the product.
func countRoot(sources []source) []row {
	files, lines, hosts := 0, 0, 0
	for _, s := range sources {
		if path.Dir(s.path) == "controller" {
			files, lines = files+1, lines+s.lines
		}
		if s.isBelow("applier/hosttest") {
			hosts += s.lines
		}
	}
	return []row{
		{"files in controller/ itself", fmt.Sprint(files)},
		{"lines of these", fmt.Sprint(lines)},
		{"lines of test hosts in folders of the product", fmt.Sprint(hosts)},
	}
}

// countNames counts the names of functions and methods in controller/ and applier/.
func countNames(sources []source) []row {
	all, letters, single := 0, 0, 0
	for _, s := range sources {
		if !s.isBelow("controller") && !s.isBelow("applier") || s.isBelow("applier/hosttest") {
			continue
		}
		for _, f := range s.functions() {
			all++
			letters += len(f.Name.Name)
			if isOneWord(f.Name.Name) {
				single++
			}
		}
	}
	return []row{
		{"letters in the names of functions in controller/ and applier/, in the mean", fmt.Sprintf("%.1f", float64(letters)/float64(all))},
		{"of these names are one word, in percent", fmt.Sprint(single * 100 / all)},
	}
}

// isOneWord reports whether a name has no second word: another capital after a small letter.
func isOneWord(name string) bool {
	small := false
	for _, r := range name {
		if unicode.IsUpper(r) && small {
			return false
		}
		small = small || unicode.IsLower(r)
	}
	return true
}

const (
	manyBranches   = 10
	denseBranching = 0.6
)

// countBranches counts functions with many branches in few lines.
func countBranches(sources []source) []row {
	var found []string
	for _, s := range sources {
		for _, f := range s.functions() {
			lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if n := branches(f); n >= manyBranches && float64(n)/float64(lines) >= denseBranching {
				found = append(found, fmt.Sprintf("%s:%d", s.path, s.set.Position(f.Pos()).Line))
			}
		}
	}
	what := "functions with ten or more branches and 0.6 a line"
	if len(found) > 0 {
		what += ": " + strings.Join(found, " ")
	}
	return []row{{what, fmt.Sprint(len(found))}}
}

// branches counts the places where a function can go two ways.
func branches(f *ast.FuncDecl) int {
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// called are functions that few places should call, or that few should declare.
var called = []struct {
	what    string
	pattern *regexp.Regexp
	in      string
}{
	{"places in controller/ that decode annotations of Nodes", regexp.MustCompile(`\b(?:published\.)?Decode(?:Desired|Report|State)\(`), "controller"},
	{"functions in controller/ that say whether a Node is Ready", regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?[iI]sReady\(`), "controller"},
	{"functions in controller/ that say whether a node agent is silent", regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?[iI]sSilent\(`), "controller"},
	{"places in controller/ that set the kind of an untyped object", regexp.MustCompile(`\.SetGroupVersionKind\(|\.SetKind\(`), "controller"},
}

func countCalls(sources []source) []row {
	var rows []row
	for _, c := range called {
		n := 0
		for _, s := range sources {
			if s.isBelow(c.in) {
				n += len(c.pattern.FindAll(s.text, -1))
			}
		}
		rows = append(rows, row{c.what, fmt.Sprint(n)})
	}
	return rows
}

// vague are words that do not say who or when. http.NoBody is none of them.
var vague = regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Mm]eanwhile)\b`)

// countWords counts lines with such words where users read: in texts of Go files, and in the documents.
func countWords(tree string) (row, error) {
	n := 0
	err := fs.WalkDir(os.DirFS(tree), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || d.Name() == ".git" || d.Name() == "testdata" || name == "docs/decisions"):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || path.Ext(name) != ".go" && path.Ext(name) != ".md" && path.Ext(name) != ".yaml":
			return nil
		}
		text, err := fs.ReadFile(os.DirFS(tree), name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if path.Ext(name) != ".md" {
				line = outsideComments(line, path.Ext(name))
			}
			if vague.MatchString(line) {
				n++
			}
		}
		return nil
	})
	return row{"lines of messages, help and docs with the words nobody, somebody or meanwhile", fmt.Sprint(n)}, err
}

// outsideComments returns a line without its comment.
func outsideComments(line, ext string) string {
	mark := "//"
	if ext == ".yaml" {
		mark = "#"
	}
	before, _, _ := strings.Cut(line, mark)
	return before
}
