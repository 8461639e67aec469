// Package golden renders folders of inputs whose output is kept beside them and compared byte for byte.
//
//	golden.yaml  from: the --from list, relative to the folder; facts; nodes (empty for all)
//	want/        one folder per node, as `wmco render --all --out` writes it
package golden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/bundle"
	"wmco/render/preview"
)

// CaseFile is the name of the file that makes a folder a case.
const CaseFile = "golden.yaml"

// Case is the content of golden.yaml.
type Case struct {
	// From lists files and folders, relative to the case's folder. A later one wins for an object of the same name.
	From []string `json:"from"`
	// Facts is a file of facts, relative to the case's folder.
	Facts string `json:"facts,omitempty"`
	// Nodes are names or addresses; empty means every Windows machine of the inputs.
	Nodes []string `json:"nodes,omitempty"`
}

// ErrRefused says that the inputs have findings of severity error.
var ErrRefused = errors.New("the inputs are refused")

// Load reads golden.yaml of a folder, strictly.
func Load(dir string) (Case, error) {
	data, err := os.ReadFile(filepath.Join(dir, CaseFile))
	if err != nil {
		return Case{}, fmt.Errorf("reading case: %w", err)
	}
	var c Case
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return Case{}, fmt.Errorf("reading case %q: %w", dir, err)
	}
	if len(c.From) == 0 {
		return Case{}, fmt.Errorf("reading case %q: from is empty", dir)
	}
	return c, nil
}

// Gather reads the inputs of the case. Paths are taken relative to dir and named in findings as the case names them.
func (c Case) Gather(ctx context.Context, dir string) (gather.Result, error) {
	var facts []bundle.Facts
	if c.Facts != "" {
		file, err := os.Open(filepath.Join(dir, c.Facts))
		if err != nil {
			return gather.Result{}, fmt.Errorf("reading facts: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read from
		if facts, err = bundle.DecodeFacts(file); err != nil {
			return gather.Result{}, fmt.Errorf("reading %q: %w", c.Facts, err)
		}
	}
	paths := make([]string, len(c.From))
	for i, p := range c.From {
		paths[i] = filepath.Join(dir, p)
	}
	result, err := gather.Gather(ctx, objects.Paths(paths, nil), gather.Options{Facts: facts})
	return relative(result, dir), err
}

// relative names sources relative to the case's folder, so that goldens do not depend on where the repository is.
func relative(r gather.Result, dir string) gather.Result {
	rel := func(ref bundle.Ref) bundle.Ref {
		if path, err := filepath.Rel(dir, ref.Source); ref.Source != "" && err == nil {
			ref.Source = filepath.ToSlash(path)
		}
		return ref
	}
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		r.Findings[i].Object = rel(r.Findings[i].Object)
	}
	for origin, ref := range r.Cluster.Origins {
		r.Cluster.Origins[origin] = rel(ref)
	}
	for i := range r.Cluster.Mirrors.Sets {
		r.Cluster.Mirrors.Sets[i].Ref = rel(r.Cluster.Mirrors.Sets[i].Ref)
	}
	r.Cluster.Mirrors.Scopes.Ref = rel(r.Cluster.Mirrors.Scopes.Ref)
	r.Cluster.Mirrors.PullSecretRef = rel(r.Cluster.Mirrors.PullSecretRef)
	for _, n := range r.Nodes {
		for origin, ref := range n.Origins {
			n.Origins[origin] = rel(ref)
		}
	}
	return r
}

// Tree renders the case: the files of every chosen node below a folder of its name. With findings of severity error
// the error is ErrRefused, and the findings tell why.
func (c Case) Tree(r gather.Result) (map[string][]byte, bundle.Findings, error) {
	findings := r.Findings
	fleet, more, err := render.NewFleet(r.Cluster, render.Options{})
	if err != nil {
		return nil, nil, err
	}
	findings = append(findings, more...).Sorted()
	if findings.Refused() {
		return nil, findings, ErrRefused
	}
	tree, all := map[string][]byte{}, slices.Clone(findings)
	for _, n := range r.Nodes {
		if len(c.Nodes) > 0 && !slices.Contains(c.Nodes, n.ID()) && !slices.Contains(c.Nodes, n.Address) {
			continue
		}
		b, own, err := fleet.Node(n)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, own...)
		if own.Refused() {
			continue
		}
		files, err := preview.Tree(b, append(slices.Clone(findings), own...).Sorted(), preview.Options{})
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			tree[n.ID()+"/"+f.Path] = f.Data
		}
	}
	findings = all
	if findings.Refused() {
		return nil, findings.Sorted(), ErrRefused
	}
	return tree, findings.Sorted(), nil
}

// ReadTree reads a folder into a tree, by paths with forward slashes. A folder that is not there is an empty tree.
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
