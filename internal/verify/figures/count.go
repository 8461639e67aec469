package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxColumns and tooManyColumns are the lengths of lines that are counted, in characters; a tab is one.
const (
	maxColumns     = 120
	tooManyColumns = 150
)

// countAll returns all figures of a tree.
func countAll(ctx context.Context, tree string) ([]figure, error) {
	sources, err := readSources(tree)
	if err != nil {
		return nil, err
	}
	list, err := countLinked(ctx, tree)
	if err != nil {
		return nil, err
	}
	list = append(list, countLines(sources)...)
	list = append(list, countNames(sources)...)
	list = append(list, countDense(sources)...)
	texts, err := countTexts(ctx, tree)
	return append(list, texts...), err
}

// countLinked counts the lines of this module in the two programs as they are released.
func countLinked(ctx context.Context, tree string) ([]figure, error) {
	either := map[string]int{}
	var list []figure
	for _, p := range []struct{ name, system string }{{"wmco", "linux"}, {"wmco-node", "windows"}} {
		files, err := linkedFiles(ctx, tree, "./cmd/"+p.name, p.system)
		if err != nil {
			return nil, err
		}
		lines := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			either[file] = bytes.Count(text, []byte("\n"))
			lines += either[file]
		}
		list = append(list, figure{"lines linked into " + p.name + " for " + p.system, fmt.Sprint(lines)})
	}
	sum := 0
	for _, lines := range either {
		sum += lines
	}
	return append(list, figure{"lines linked into either", fmt.Sprint(sum)}), nil
}

// linkedFiles returns the files of this module that a program is made of.
func linkedFiles(ctx context.Context, tree, program, system string) ([]string, error) {
	const format = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, program)
	cmd.Dir, cmd.Env, cmd.Stderr = tree, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing what %s links: %w", program, err)
	}
	return strings.Fields(string(out)), nil
}

// countLines counts lines of Go by area, which is the folder at the top.
func countLines(sources []source) []figure {
	product, tests := map[string]int{}, map[string]int{}
	all, long, tooLong := 0, 0, 0
	for _, s := range sources {
		of := product
		if s.isTest() {
			of = tests
		}
		of["all"] += s.lines
		of[s.area()] += s.lines
		for line := range strings.Lines(string(s.text)) {
			columns := len([]rune(strings.TrimSuffix(line, "\n")))
			all, long, tooLong = all+1, long+boolToInt(columns > maxColumns), tooLong+boolToInt(columns > tooManyColumns)
		}
	}
	var list []figure
	for what, of := range map[string]map[string]int{"lines of product in": product, "lines of tests in": tests} {
		for area, n := range of {
			list = append(list, figure{what + " " + area, fmt.Sprint(n)})
		}
	}
	slices.SortFunc(list, func(a, b figure) int { return strings.Compare(a.what, b.what) })
	return append(list,
		figure{fmt.Sprintf("percent of lines over %d columns", maxColumns), percent(long, all)},
		figure{fmt.Sprintf("percent of lines over %d columns", tooManyColumns), percent(tooLong, all)})
}

func boolToInt(b bool) int { //nolint:revive // a number, not a mode
	if b {
		return 1
	}
	return 0
}

func percent(n, all int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(max(all, 1))) }

// countNames counts the names of functions and methods of the product by area.
func countNames(sources []source) []figure {
	all, letters, single := map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		for _, f := range s.functions() {
			for _, area := range []string{"all", s.area()} {
				all[area]++
				letters[area] += len(f.Name.Name)
				single[area] += boolToInt(isOneWord(f.Name.Name))
			}
		}
	}
	var list []figure
	for _, area := range slices.Sorted(maps.Keys(all)) {
		list = append(list,
			figure{"letters of a name of a function, in the mean, in " + area, fmt.Sprintf("%.1f", float64(letters[area])/float64(all[area]))},
			figure{"percent of these names are one word, in " + area, percent(single[area], all[area])})
	}
	return list
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

// countDense counts functions of the product with many branches in few lines.
func countDense(sources []source) []figure {
	n := 0
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		for _, f := range s.functions() {
			lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			b := branches(f)
			n += boolToInt(b >= manyBranches && float64(b)/float64(lines) >= denseBranching)
		}
	}
	return []figure{{"functions with ten or more branches and 0.6 a line", fmt.Sprint(n)}}
}

// texts are words that make a reader read twice, in Go files and pages.
var texts = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"says or said", regexp.MustCompile(`\b(says|said)\b`)},
	{"what is", regexp.MustCompile(`\bwhat is\b`)},
	{"nobody, somebody, meanwhile, stands on or by itself", regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Mm]eanwhile|stands on|by itself)\b`)},
}

// countTexts counts words in committed files: pages, goldens, and lines with vague words.
func countTexts(ctx context.Context, tree string) ([]figure, error) {
	out, err := exec.CommandContext(ctx, "git", "-C", tree, "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	words, golden, found := 0, 0, make([]int, len(texts))
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // it is deleted, and that is not committed
		}
		if err != nil {
			return nil, err
		}
		top, _, _ := strings.Cut(name, "/")
		switch {
		case top == "golden":
			golden += bytes.Count(text, []byte("\n"))
			continue
		case path.Ext(name) == ".md":
			words += len(bytes.Fields(text))
		case path.Ext(name) != ".go":
			continue
		}
		for line := range bytes.Lines(text) {
			for i, t := range texts {
				found[i] += boolToInt(t.pattern.Match(line))
			}
		}
	}
	list := []figure{{"lines below golden", fmt.Sprint(golden)}, {"words in pages", fmt.Sprint(words)}}
	for i, t := range texts {
		list = append(list, figure{"lines with " + t.what, fmt.Sprint(found[i])})
	}
	return list, nil
}

// branches counts the places where a function can go two ways.
func branches(f *ast.FuncDecl) int {
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += boolToInt(x.List != nil)
		case *ast.CommClause:
			n += boolToInt(x.Comm != nil)
		case *ast.BinaryExpr:
			n += boolToInt(x.Op.String() == "&&" || x.Op.String() == "||")
		}
		return true
	})
	return n
}
