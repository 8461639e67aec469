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
	"strconv"
	"strings"
)

// source is one Go file of the product: no test, and nothing that is generated.
type source struct {
	// path is below the tree, with slashes; lines is its length.
	path  string
	lines int
	set   *token.FileSet
	file  *ast.File
	text  []byte
}

// module is the name with which the product imports its own packages.
const module = "wmco/"

// folders are those of the product that are counted.
var folders = []string{"applier", "bundle", "cmd", "controller", "payload", "render"}

func readSources(tree string) ([]source, error) {
	var all []source
	root := os.DirFS(tree)
	for _, folder := range folders {
		err := fs.WalkDir(root, folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			s, err := readSource(root, name)
			if err == nil && !ast.IsGenerated(s.file) {
				all = append(all, s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readSource(root fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("parsing %s: %w", name, err)
	}
	return source{path: name, lines: bytes.Count(text, []byte("\n")), set: set, file: file, text: text}, nil
}

// isBelow reports whether the file is in a folder, or in one below it.
func (s source) isBelow(folder string) bool { return strings.HasPrefix(s.path, folder+"/") }

// imports returns the folders of the product that the file imports.
func (s source) imports() []string {
	var all []string
	for _, i := range s.file.Imports {
		if name, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasPrefix(name, module) {
			all = append(all, strings.TrimPrefix(name, module))
		}
	}
	return all
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
