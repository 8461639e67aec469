package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Pure code must not use these packages. Libraries that it links do, so only its own source is checked.
// path/filepath is one of them because its result depends on the system.
var (
	// pure are the folders of pure code, with the packages that each must not use besides impure.
	pure = map[string][]string{
		"bundle": nil, "layout": nil, "payload": nil, "render": nil, "templates": nil,
		"applier/plan":            {"bufio", "context", "io/..."}, // values in, values out: it neither waits nor reads
		"controller/rollout/plan": {"context", "io/...", "sync/..."},
	}
	impure  = []string{"os/...", "net/...", "math/rand/...", "crypto/rand", "path/filepath", "syscall", "io/ioutil"}
	allowed = []string{"net/netip", "net/url"}
	// impureTime are the functions of package time that read the clock or the local time zone.
	impureTime = []string{
		"After", "AfterFunc", "LoadLocation", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick",
		"Until",
	}
)

// checkPurity returns every use of the clock, files, the environment, the network or random numbers in the Go files of
// dir and below, without tests, with file and line. banned are further packages that are violations.
func checkPurity(dir string, banned []string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// The latter two read a folder, and are a program.
		name := filepath.ToSlash(path)
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasSuffix(name, "payload/store") || strings.HasSuffix(name, "payload/fetch") || strings.HasSuffix(name, "payload/image-verifier")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading Go source: %w", err)
		}
		for _, use := range impureUses(parsed, slices.Concat(impure, banned)) {
			at := files.Position(use.at)
			out = append(out, fmt.Sprintf("%s:%d: pure code uses %s", filepath.ToSlash(at.Filename), at.Line, use.name))
		}
		return nil
	})
	return out, err
}

// use is one violation.
type use struct {
	at   token.Pos
	name string
}

func impureUses(file *ast.File, banned []string) []use {
	var out []use
	timeName := ""
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		switch {
		case path == "time" && spec.Name != nil && spec.Name.Name == ".":
			out = append(out, use{spec.Pos(), "a dot import of time"})
		case path == "time" && spec.Name != nil:
			timeName = spec.Name.Name
		case path == "time":
			timeName = path
		case matchesAny(banned, path) && !matchesAny(allowed, path):
			out = append(out, use{spec.Pos(), path})
		}
	}
	if timeName == "" {
		return out
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == timeName && slices.Contains(impureTime, s.Sel.Name) {
				out = append(out, use{s.Pos(), "time." + s.Sel.Name})
			}
		}
		return true
	})
	return out
}
