package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants returns the names of this package's exported constants with their values.
func constants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range parsed(t, ".") {
		for _, o := range file.Scope.Objects {
			spec, ok := o.Decl.(*ast.ValueSpec)
			if !ok || !ast.IsExported(o.Name) {
				continue
			}
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[o.Name] = value
		}
	}
	return found
}

// parsed returns the Go files of a folder and those below it, without tests, by path.
func parsed(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryReasonHasOneEntry(t *testing.T) {
	entries := map[string]Entry{}
	for _, area := range Areas() {
		for _, e := range area.Entries {
			if _, twice := entries[e.Reason]; twice {
				t.Errorf("%s has two entries", e.Reason)
			}
			if !slices.Contains([]string{isError, isWarning, isInfo, errorOrWarning, warningOrInfo}, e.Severity) || !strings.HasSuffix(e.Meaning, ".") || !strings.HasSuffix(e.Fix, ".") {
				t.Errorf("%s: an entry has a severity, and sentences for meaning and fix: %+v", e.Reason, e)
			}
			entries[e.Reason] = e
		}
	}
	all := constants(t)
	for name, value := range all {
		if name != value {
			t.Errorf("%s has the value %q", name, value)
		}
		if _, ok := entries[name]; !ok {
			t.Errorf("%s has no entry", name)
		}
	}
	if len(entries) != len(all) {
		t.Errorf("%d entries for %d constants", len(entries), len(all))
	}
}

// TestPagesSayWhichCredentialsImagesNeed: a fix that sends people to the pull secret is right, because kubelets have it.
func TestPagesSayWhichCredentialsImagesNeed(t *testing.T) {
	for page, text := range map[string]string{"platforms/azure.md": "* **ACR.** ", "platforms/gcp.md": "* **Artifact Registry.** ", "workloads.md": "### Private images"} {
		data, err := os.ReadFile("../../docs/" + page)
		if err != nil || !strings.Contains(string(data), text) || !strings.Contains(string(data), "pull secret") {
			t.Errorf("%s does not say which credentials private images need: %v", page, err)
		}
	}
}

// site is a place in the code that makes a finding.
type site struct {
	reasons []string
	// severity is empty where it is computed.
	severity string
	// literal is a reason that is not a constant of this package.
	literal string
}

var camelCase = regexp.MustCompile(`^"[A-Z][a-z0-9]+([A-Z][A-Za-z0-9]*)+"$`)

// makers are the functions that make a finding of the reason among their arguments, with its severity where it is fixed.
var makers = map[string]string{"add": "", "addFinding": "", "finding": "", "leaveOut": "", "addWarning": isWarning, "addInfo": isInfo, "refuse": isError}

// siteOf reads a call of a maker, a bundle.Finding, or an assignment of a severity and a reason.
func siteOf(n ast.Node) (s site) {
	var parts []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		severity, ok := makers[name(n.Fun)]
		if !ok {
			return s
		}
		parts, s.severity = n.Args, severity
	case *ast.AssignStmt:
		if !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return name(e) == "Reason" }) {
			return s
		}
		parts = n.Rhs
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if field, ok := e.(*ast.KeyValueExpr); ok && (name(field.Key) == "Reason" || name(field.Key) == "Severity") {
				parts = append(parts, field.Value)
			}
		}
	}
	for _, e := range parts {
		s.read(e)
	}
	return s
}

func (s *site) read(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if camelCase.MatchString(e.Value) {
			s.literal = e.Value
		}
	case *ast.SelectorExpr:
		switch name(e.X) {
		case "reason":
			s.reasons = append(s.reasons, e.Sel.Name)
		case "bundle":
			if severity, ok := strings.CutPrefix(e.Sel.Name, "Severity"); ok {
				s.severity = strings.ToLower(severity)
			}
		}
	}
}

func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// TestTheCodeAgreesWithTheTable: every finding has a reason of the table, with its severity, and every reason is used.
func TestTheCodeAgreesWithTheTable(t *testing.T) {
	severity, used := map[string]string{}, map[string]bool{}
	for _, area := range Areas() {
		for _, e := range area.Entries {
			severity[e.Reason] = e.Severity
		}
	}
	sites := 0
	for _, folder := range []string{"render", "controller", "cmd/wmco", "preflight"} {
		for path, file := range parsed(t, filepath.Join("../..", folder)) {
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(*ast.SelectorExpr); ok && name(e.X) == "reason" {
					used[e.Sel.Name] = true
				}
				s := siteOf(n)
				if s.literal != "" {
					t.Errorf("%s: %s is not a constant of this package", path, s.literal)
				}
				for _, r := range s.reasons {
					sites++
					if !strings.Contains(severity[r], s.severity) {
						t.Errorf("%s: a finding of %s is of severity %s, its entry has %s", path, r, s.severity, severity[r])
					}
				}
				return true
			})
		}
	}
	for r := range severity {
		if !used[r] {
			t.Errorf("%s has an entry, and no code uses it", r)
		}
	}
	if sites < len(severity) {
		t.Errorf("the test sees only %d findings", sites)
	}
}

// TestSomeReasonsAreReportedBySomePrograms: a golden folder would call an accepted finding unused that only the operator reports. The sentence in the text
// decides, so no other words may tell it.
func TestSomeReasonsAreReportedBySomePrograms(t *testing.T) {
	tells := regexp.MustCompile("(?i)only (the operator|the command line|`wmco [a-z]+`) (reports|checks)")
	some := 0
	for _, e := range OfInputs() {
		if !IsReportedByAll(e.Reason) {
			some++
		} else if tells.MatchString(e.Meaning) {
			t.Errorf("%s: end the text with one of the constants: %s", e.Reason, e.Meaning)
		}
	}
	if some != 17 {
		t.Errorf("%d reasons are reported by some programs", some)
	}
}
