package consumers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// overridden is the golden whose settings have an evictionHard of their own.
const overridden = "none-overrides"

// A kubelet has its own thresholds only where the configuration has none (cmd/kubelet/app/server.go, loadConfigFile): ours must have all.
func TestBundlesHaveTheEvictionThresholdsOfWindows(t *testing.T) {
	want := windowsThresholds(t)
	goldens := renderCases(t)
	files, err := filepath.Glob(filepath.Join(goldens, "*", "want", "*", "C", "k", "kubelet.conf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("goldens of kubelet.conf: %d, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasPrefix(file, filepath.Join(goldens, overridden)+string(filepath.Separator)) {
			continue
		}
		contents, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		config, err := decodeKubelet(contents)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !maps.Equal(want, config.EvictionHard) {
			t.Errorf("%s: evictionHard %v, and the kubelet's defaults for Windows are %v", file, config.EvictionHard, want)
		}
	}
}

// windowsThresholds reads the kubelet's defaults for Windows from its source, because this test is compiled for another system.
func windowsThresholds(t *testing.T) map[string]string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("finding the kubelet's source: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(dir)), "pkg", "kubelet", "eviction", "defaults_windows.go")
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	thresholds := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || spec.Names[0].Name != "DefaultEvictionHard" {
			return true
		}
		maps.Copy(thresholds, literalMap(t, spec.Values[0]))
		return false
	})
	if len(thresholds) == 0 {
		t.Fatalf("%s has no DefaultEvictionHard", source)
	}
	return thresholds
}

// literalMap returns the entries of a map literal of texts.
func literalMap(t *testing.T, value ast.Expr) map[string]string {
	t.Helper()
	literal, ok := value.(*ast.CompositeLit)
	if !ok {
		t.Fatalf("%T is not a map literal", value)
	}
	out := map[string]string{}
	for _, e := range literal.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			t.Fatalf("%T is not an entry of a map", e)
		}
		out[unquoted(t, pair.Key)] = unquoted(t, pair.Value)
	}
	return out
}

func unquoted(t *testing.T, e ast.Expr) string {
	t.Helper()
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is not a literal", e)
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
