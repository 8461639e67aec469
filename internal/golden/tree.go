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

// Differences returns a line for each file that differs between the wanted and the rendered tree, sorted by path.
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

// ReadTree reads a folder into a tree, by paths with forward slashes. A folder that does not exist is an empty tree,
// and so is a file. Links are never followed: one is an error.
func ReadTree(dir string) (map[string][]byte, error) {
	tree, links, err := readFolder(dir)
	if err == nil && len(links) > 0 {
		err = linkError(dir, links[0])
	}
	return tree, err
}

// ReadWant reads the wanted output of a golden folder, as ReadTree. A folder with it that is a link is an error too.
func ReadWant(dir string) (map[string][]byte, error) {
	if err := checkWant(dir); err != nil {
		return nil, err
	}
	return ReadTree(WantDir(dir))
}

// checkWant returns an error where the folder with the wanted output of a case is a link: its contents are
// printed, and it is written to.
func checkWant(dir string) error {
	info, err := os.Lstat(WantDir(dir))
	if err == nil && !info.IsDir() {
		return linkError(dir, filepath.Base(WantDir(dir)))
	}
	return nil
}

func linkError(dir, name string) error {
	return fmt.Errorf("%q in %q is a link or no file: remove it, a preview has none", name, dir)
}

// readFolder reads the files of a folder, and the paths of entries that are neither files nor folders, such as links.
func readFolder(dir string) (tree map[string][]byte, links []string, err error) {
	tree = map[string][]byte{}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return tree, nil, nil
		}
		return nil, nil, fmt.Errorf("reading tree %q: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading tree %q: %w", dir, err)
	}
	defer root.Close() //nolint:errcheck // only read from
	files, links, err := listEntries(root)
	for _, name := range files {
		if err == nil {
			tree[name], err = root.ReadFile(name)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading tree %q: %w", dir, err)
	}
	return tree, links, nil
}

// listEntries returns the paths of the files of a folder, and of entries that are neither files nor folders.
func listEntries(root *os.Root) (files, links []string, err error) {
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type().IsRegular():
			files = append(files, name)
		case !d.IsDir():
			links = append(links, name)
		}
		return nil
	})
	return files, links, err
}

// Previewed returns the nodes of a folder that Write wrote; none where it holds no preview.
func Previewed(dir string) ([]review.Node, error) {
	tree, links, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	nodes, err := PreviewedTree(tree)
	if len(links) > 0 && (len(nodes) > 0 || err != nil) {
		return nil, linkError(dir, links[0])
	}
	return nodes, err
}

// PreviewedWant returns the nodes of the wanted output of a golden folder.
func PreviewedWant(dir string) ([]review.Node, error) {
	tree, err := ReadWant(dir)
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
	grouped, err := groupedNodes(tree)
	return append(nodes, grouped...), err
}
