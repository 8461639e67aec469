package golden

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"wmco/controller/inputs/desired"
	"wmco/render/preview"
	"wmco/render/review"
)

// Files returns the preview of each node, below a folder of its name.
func Files(list []desired.Rendered, o preview.Options) ([]preview.File, error) {
	var all []preview.File
	for _, r := range list {
		files, err := preview.Tree(r.Bundle, r.Findings, o)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			f.Path = r.Node.ID() + "/" + f.Path
			all = append(all, f)
		}
	}
	return all, nil
}

// Reviewed returns nodes as a comparison takes them.
func Reviewed(list []desired.Rendered) []review.Node {
	nodes := make([]review.Node, len(list))
	for i, r := range list {
		nodes[i] = review.Node{Name: r.Node.ID(), Address: r.Node.Address, Bundle: r.Bundle.Bundle, Findings: preview.Shown(r.Findings)}
	}
	return nodes
}

// Tree returns the contents of files by their paths.
func Tree(files []preview.File) map[string][]byte {
	tree := map[string][]byte{}
	for _, f := range files {
		tree[f.Path] = f.Data
	}
	return tree
}

// Differences returns a line for each file that differs between what is wanted and what is rendered, sorted by path.
func Differences(want, got map[string][]byte) []string {
	paths := slices.Sorted(maps.Keys(want))
	for path := range got {
		if _, ok := want[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var lines []string
	for _, path := range paths {
		had, inWant := want[path]
		has, inGot := got[path]
		switch {
		case !inWant:
			lines = append(lines, "missing  "+path)
		case !inGot:
			lines = append(lines, "extra    "+path)
		case !bytes.Equal(had, has):
			lines = append(lines, "differs  "+path)
		}
	}
	return lines
}

// ReadTree reads a folder into a tree, by paths with forward slashes. A folder that does not exist is an empty tree.
func ReadTree(dir string) (map[string][]byte, error) {
	tree := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		tree[filepath.ToSlash(rel)] = data
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return tree, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading tree %q: %w", dir, err)
	}
	return tree, nil
}

// Previewed returns the nodes of a folder that Write wrote; none where it holds no preview.
func Previewed(dir string) ([]review.Node, error) {
	tree, err := ReadTree(dir)
	if err != nil {
		return nil, err
	}
	return PreviewedTree(tree)
}

// PreviewedTree returns the nodes of a tree, as Previewed.
func PreviewedTree(tree map[string][]byte) ([]review.Node, error) {
	var nodes []review.Node
	roots := preview.Roots(tree)
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		b, err := preview.Read(roots[name])
		if err != nil {
			return nil, fmt.Errorf("reading the preview of %q: %w", name, err)
		}
		nodes = append(nodes, review.Node{Name: name, Bundle: b, Findings: preview.ReadFindings(roots[name])})
	}
	return nodes, nil
}
