package imports

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func TestImportsFollowTable(t *testing.T) {
	readSources(t)
	for _, goos := range []string{"linux", "windows"} {
		t.Run(goos, func(t *testing.T) {
			g, err := loadGraph(t.Context(), root, goos)
			if err != nil {
				t.Fatal(err)
			}
			for _, violation := range checkRules(g, table()) {
				t.Error(violation)
			}
		})
	}
}

// TestFoldersImportDownwards: of the folders at the top, each imports those before it alone, so that the tree is read from the first to the last one.
func TestFoldersImportDownwards(t *testing.T) {
	order := []string{"docs", "templates", "bundle", "payload", "layout", "preflight", "applier", "render", "deploy", "controller", "report", "internal", "cmd"}
	g, err := loadGraph(t.Context(), root, "windows")
	if err != nil {
		t.Fatal(err)
	}
	folder := func(own string) string { name, _, _ := strings.Cut(own, "/"); return name }
	for path, p := range g.packages {
		own, ok := g.own(path)
		if !ok || slices.Index(order, folder(own)) < 0 {
			continue
		}
		for _, imported := range p.Imports {
			if other, ok := g.own(imported); ok && slices.Index(order, folder(other)) > slices.Index(order, folder(own)) {
				t.Errorf("%s imports %s, which stands above it", path, imported)
			}
		}
	}
}

func TestPureCode(t *testing.T) {
	for dir, banned := range pure {
		violations, err := checkPurity(filepath.Join(root, dir), banned)
		if err != nil {
			t.Fatal(err)
		}
		for _, violation := range violations {
			t.Error(violation)
		}
	}
}

// testdata/bad is a module that breaks every kind of rule.
func TestCheckFindsViolations(t *testing.T) {
	g, err := loadGraph(t.Context(), "testdata/bad", "linux")
	if err != nil {
		t.Fatal(err)
	}
	same(t, checkRules(g, table()), []string{
		"wmco/applier must never link render/mirrors: wmco/applier -> wmco/render/mirrors",
		"wmco/applier must never link k8s.io/client-go/...: wmco/applier -> wmco/render/mirrors -> k8s.io/client-go/rest",
		"wmco/applier may not import wmco/render/mirrors",
		"wmco/applier/plan may not import wmco/applier",
		"wmco/applier/plan may link nothing but the standard library and github.com/opencontainers/go-digest: " +
			"wmco/applier/plan -> wmco/applier -> wmco/render/mirrors -> k8s.io/client-go/rest",
		"wmco/applier/records may not import wmco/applier",
		"wmco/applier/records may link nothing but the standard library and github.com/opencontainers/go-digest, github.com/klauspost/compress/...: " +
			"wmco/applier/records -> wmco/applier -> wmco/render/mirrors -> k8s.io/client-go/rest",
		"wmco/render must never link k8s.io/client-go/...: wmco/render -> wmco/render/mirrors -> k8s.io/client-go/rest",
		"wmco/render may not import wmco/applier",
		"wmco/bundle may link nothing but the standard library and github.com/opencontainers/go-digest: " +
			"wmco/bundle -> k8s.io/client-go/rest",
		"wmco/render/mirrors must never link k8s.io/client-go/...: wmco/render/mirrors -> k8s.io/client-go/rest",
		"wmco/applier/remote must never link golang.org/x/crypto/ssh/...: wmco/applier/remote -> golang.org/x/crypto/ssh",
		"wmco/controller may not import wmco/applier/remote/ssh",
		"wmco/controller must never link applier/remote/ssh: wmco/controller -> wmco/applier/remote/ssh",
		"wmco/strange has no row in the import table",
	})
}

func TestCheckPurityFindsViolations(t *testing.T) {
	got, err := checkPurity("testdata/bad/render", nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, []string{
		"testdata/bad/render/impure.go:5: pure code uses crypto/rand",
		"testdata/bad/render/impure.go:6: pure code uses math/rand/v2",
		"testdata/bad/render/impure.go:7: pure code uses net",
		"testdata/bad/render/impure.go:10: pure code uses os",
		"testdata/bad/render/impure.go:11: pure code uses path/filepath",
		"testdata/bad/render/impure.go:20: pure code uses time.Now",
		"testdata/bad/render/impure.go:21: pure code uses time.Since",
	})
}

func TestCheckPurityFindsReadsInPlan(t *testing.T) {
	got, err := checkPurity("testdata/bad/applier/plan", pure["applier/plan"])
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, []string{
		"testdata/bad/applier/plan/plan.go:5: pure code uses context",
		"testdata/bad/applier/plan/plan.go:6: pure code uses io",
		"testdata/bad/applier/plan/plan.go:7: pure code uses io/fs",
	})
}

func TestMostSpecificRowApplies(t *testing.T) {
	for own, want := range map[string]string{
		"render":              "render",
		"render/views":        "render",
		"bundle":              "bundle",
		"bundle/archive":      "bundle/archive",
		"controller/gather/x": "controller/gather",
		"cmd/wmco":            "cmd",
		"cmd/wmco-node":       "cmd/wmco-node",
		"renderer":            "",
	} {
		if got, _ := ruleFor(own, table()); got.pkg != want {
			t.Errorf("ruleFor(%q) = %q, want %q", own, got.pkg, want)
		}
	}
}

// readSources stats every Go file of the module: the cache of go test knows only the files that the test itself opens, and
// would otherwise repeat an old result of go list.
func readSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || path == filepath.Join(root, "bin")) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".go" || entry.Name() == "go.mod" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
