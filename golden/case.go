// Package golden renders folders of inputs whose output is kept beside them and compared byte for byte.
//
//	golden.yaml  from: the --from list, relative to the folder; facts; payload; nodes (empty for all)
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

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/payload/store"
	"wmco/render"
	"wmco/render/preview"
	"wmco/render/review"
)

// CaseFile is the name of the file that makes a folder a case.
const CaseFile = "golden.yaml"

// Case is the content of golden.yaml.
type Case struct {
	// From lists files and folders, relative to the case's folder. A later one wins for an object of the same name.
	From []string `json:"from"`
	// Facts is a file of facts, relative to the case's folder.
	Facts string `json:"facts,omitempty"`
	// Payload is a folder that make payload wrote, relative to the case's folder. Without it executables are named, and no
	// more.
	Payload string `json:"payload,omitempty"`
	// Nodes are names or addresses; empty means every Windows machine of the inputs.
	Nodes []string `json:"nodes,omitempty"`
}

// WantDir is where the wanted output of a case stands.
func WantDir(dir string) string { return filepath.Join(dir, "want") }

// Wants tells whether the case is about the node.
func (c Case) Wants(n render.Node) bool {
	return len(c.Nodes) == 0 || slices.Contains(c.Nodes, n.ID()) || slices.Contains(c.Nodes, n.Address)
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
	return gather.Gather(ctx, objects.PathsIn(dir, c.From), gather.Options{Facts: facts})
}

// Options are how the case is rendered: with its payload, where it has one. A payload that is not what its list says is a
// *store.RefusedError.
func (c Case) Options(ctx context.Context, dir string) (render.Options, error) {
	if c.Payload == "" {
		return render.Options{}, nil
	}
	set, err := store.Read(ctx, filepath.Join(dir, c.Payload))
	return render.Options{Payload: set}, err
}

// Rendered is one node of a case.
type Rendered struct {
	Node   render.Node
	Bundle render.Bundle
	// Findings are those of the cluster and of the node.
	Findings bundle.Findings
}

// Render renders the chosen nodes. With findings of severity error the error is ErrRefused, and the findings tell why.
func (c Case) Render(r gather.Result, o render.Options) ([]Rendered, bundle.Findings, error) {
	fleet, findings, err := render.NewFleet(r.Cluster, o)
	if err != nil {
		return nil, nil, err
	}
	cluster := append(findings, r.Findings...).Sorted()
	if cluster.Refused() {
		return nil, cluster, ErrRefused
	}
	var list []Rendered
	all := slices.Clone(cluster)
	for _, n := range r.Nodes {
		if !c.Wants(n) {
			continue
		}
		b, own, err := fleet.Node(n)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, own...)
		list = append(list, Rendered{Node: n, Bundle: b, Findings: append(slices.Clone(cluster), own...).Sorted()})
	}
	if all.Refused() {
		return nil, all.Sorted(), ErrRefused
	}
	return list, all.Sorted(), nil
}

// Tree is the files of every node below a folder of its name, as they are kept.
func Tree(list []Rendered) (map[string][]byte, error) {
	tree := map[string][]byte{}
	for _, r := range list {
		files, err := preview.Tree(r.Bundle, r.Findings, preview.Options{})
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			tree[r.Node.ID()+"/"+f.Path] = f.Data
		}
	}
	return tree, nil
}

// Reviewed is the nodes as a comparison takes them.
func Reviewed(list []Rendered) []review.Node {
	nodes := make([]review.Node, len(list))
	for i, r := range list {
		nodes[i] = review.Node{Name: r.Node.ID(), Address: r.Node.Address, Bundle: r.Bundle.Bundle}
	}
	return nodes
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
