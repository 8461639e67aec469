package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
)

// source is one Go file that is written by hand.
type source struct {
	// path is below the tree, with slashes; lines is its length.
	path  string
	lines int
	set   *token.FileSet
	file  *ast.File
	text  []byte
}

func readSources(tree string) ([]source, error) {
	var all []source
	root := os.DirFS(tree)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		s, err := readSource(root, name)
		if err == nil && !ast.IsGenerated(s.file) {
			all = append(all, s)
		}
		return err
	})
	return all, err
}

func readSource(root fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parsing %s: %w", name, err)
	}
	return source{path: name, lines: bytes.Count(text, []byte("\n")), set: set, file: file, text: text}, nil
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// area returns the folder at the top; of programs and of internal packages the one below.
func (s source) area() string {
	parts := strings.Split(path.Dir(s.path), "/")
	if parts[0] == "internal" || parts[0] == "cmd" {
		return path.Join(parts[:min(len(parts), 2)]...)
	}
	return parts[0]
}

// functions returns the functions and methods that the file declares.
func (s source) functions() []*ast.FuncDecl {
	var all []*ast.FuncDecl
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			all = append(all, f)
		}
	}
	return all
}
