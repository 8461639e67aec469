package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/render/yamltext"
)

// ErrNotPreview is wrapped by the errors of Read.
var ErrNotPreview = errors.New("not a preview that wmco wrote")

// Read returns the bundle of one node's preview. Secrets have the text of the preview, which is masked unless
// Options.ShowSecrets was set. Edited files, which do not match their digests, are refused.
func Read(tree map[string][]byte) (bundle.Bundle, error) {
	m, err := bundle.DecodeManifest(tree[ManifestFile])
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("%w: %w", ErrNotPreview, err)
	}
	b := bundle.Bundle{Cluster: m.Layers[0].Layer, Node: m.Layers[1].Layer}
	for _, l := range []*bundle.Layer{&b.Cluster, &b.Node} {
		if err := readFiles(l, tree); err != nil {
			return bundle.Bundle{}, err
		}
	}
	if err := readEnvironment(&b.Cluster, tree); err != nil {
		return bundle.Bundle{}, err
	}
	if err := json.Unmarshal(tree[ProvenanceFile], &b.Provenance); err != nil {
		return bundle.Bundle{}, fmt.Errorf("%w: reading %s: %w", ErrNotPreview, ProvenanceFile, err)
	}
	return b, nil
}

// ReadFindings returns the findings of one node's preview; none if they cannot be read.
func ReadFindings(tree map[string][]byte) bundle.Findings {
	var findings bundle.Findings
	if err := json.Unmarshal(tree[FindingsFile], &findings); err != nil {
		return nil
	}
	return findings
}

func readFiles(l *bundle.Layer, tree map[string][]byte) error {
	for i, f := range l.Files {
		path := TreePath(f.Path)
		data, ok := tree[path]
		switch {
		case !ok:
			return fmt.Errorf("%w: %s is missing", ErrNotPreview, path)
		case f.Secret:
			l.Files[i].Content = bundle.Content{Preview: data}
		case bundle.Of(data) != f.Digest:
			return fmt.Errorf("%w: %s was edited: it does not match its digest in %s", ErrNotPreview, path, ManifestFile)
		default:
			l.Files[i].Content = bundle.Content{Data: data}
		}
	}
	return nil
}

// readEnvironment adds the shown text of secret variables; the manifest has the others.
func readEnvironment(l *bundle.Layer, tree map[string][]byte) error {
	var doc environmentDocument
	if err := yamltext.UnmarshalStrict(tree[EnvironmentFile], &doc); err != nil {
		return fmt.Errorf("%w: reading %s: %w", ErrNotPreview, EnvironmentFile, err)
	}
	shownAs := map[string]string{}
	for _, v := range doc.Machine {
		shownAs["/"+v.Name] = v.Value
	}
	for _, e := range doc.Services {
		for _, v := range e.Variables {
			shownAs[e.Name+"/"+v.Name] = v.Value
		}
	}
	show := func(set string, variables []bundle.Variable) {
		for i, v := range variables {
			if v.Secret() {
				variables[i].Content = bundle.Content{Preview: []byte(shownAs[set+"/"+v.Name])}
			}
		}
	}
	show("", l.Variables)
	for _, e := range l.Environments {
		show(e.Name, e.Variables)
	}
	return nil
}

// Roots returns the previews in a tree, by folder, which has the name of the node. The name is "" if the tree itself is a
// preview.
func Roots(tree map[string][]byte) map[string]map[string][]byte {
	roots := map[string]map[string][]byte{}
	for path := range tree {
		if path == ManifestFile || strings.Count(path, "/") == 1 && strings.HasSuffix(path, "/"+ManifestFile) {
			name := strings.TrimSuffix(strings.TrimSuffix(path, ManifestFile), "/")
			roots[name] = treeBelow(tree, name)
		}
	}
	return roots
}

func treeBelow(tree map[string][]byte, folder string) map[string][]byte {
	if folder == "" {
		return tree
	}
	part := map[string][]byte{}
	for path, data := range tree {
		if rest, ok := strings.CutPrefix(path, folder+"/"); ok {
			part[rest] = data
		}
	}
	return part
}
