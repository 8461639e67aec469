package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wmco/bundle/reason"
)

// TestEachReasonOfAnEventHasAHeading, once, in the page that warnings link to.
func TestEachReasonOfAnEventHasAHeading(t *testing.T) {
	headings := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(reasonsPage(), -1) {
		headings[strings.ToLower(m[1])]++
	}
	for heading, n := range headings {
		if n > 1 {
			t.Errorf("%d headings %s: a link leads to the first one", n, heading)
		}
	}
	events := reasonsOfEvents(t)
	if len(events) < 25 {
		t.Errorf("only %d reasons of events are found: %q", len(events), events)
	}
	for name, at := range events {
		if headings[strings.ToLower(name)] == 0 {
			t.Errorf("%s: reason %s has no heading", at, name)
		}
	}
	for _, r := range reason.Events() {
		if _, ok := events[r.Reason]; !ok {
			t.Errorf("no Event has the reason %s", r.Reason)
		}
	}
}

// reasonsOfEvents are the constants of the packages of the operator and the node agent that are named as reasons of events, and the literals that Events are recorded with, with
// their places.
func reasonsOfEvents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"controller", "applier/agent"} {
		noteReasons(t, filepath.Join("..", "..", "..", folder), found)
	}
	return found
}

// noteReasons adds those of the packages below a folder.
func noteReasons(t *testing.T, folder string, found map[string]string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		note := func(e ast.Expr) {
			if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				name, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Error(err)
				}
				found[name] = files.Position(e.Pos()).String()
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(strings.ToLower(name.Name), "event") && len(n.Values) > i {
						note(n.Values[i])
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Eventf" && len(n.Args) > 3 {
					note(n.Args[3])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
