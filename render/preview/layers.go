package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render"
)

// LayerFile is the index of one layer. It replaces ManifestFile if nodes share a layer that is written once.
const LayerFile = "LAYER.json"

// LayerTree returns the files of the preview of one layer of a bundle, by path, with the findings. Empty YAML and JSON files
// are left out.
func LayerTree(b render.Bundle, kind bundle.LayerKind, findings bundle.Findings, o Options) ([]File, error) {
	part, layer, digest := b, b.Cluster, b.ClusterDigest
	part.Node = bundle.Layer{}
	if kind == bundle.LayerNode {
		layer, digest = b.Node, b.NodeDigest
		part.Node, part.Cluster = b.Node, bundle.Layer{}
	}
	part.Provenance = provenanceOf(b.Provenance, layer)
	var files []File
	for _, f := range layer.Files {
		files = append(files, File{Path: TreePath(f.Path), Data: shownContent(f.Content, o), Secret: f.Secret && o.ShowSecrets})
	}
	all, nothing := documentsOf(part, findings, o), documentsOf(render.Bundle{}, nil, o)
	all[LayerFile] = bundle.Index{Digest: digest, Layer: layer}
	for name, value := range all {
		if reflect.DeepEqual(value, nothing[name]) || name == ProvenanceFile && len(part.Provenance) == 0 {
			continue
		}
		data, err := encodeDocument(name, value)
		if err != nil {
			return nil, fmt.Errorf("laying out %s: %w", name, err)
		}
		files = append(files, File{Path: name, Data: data, Secret: name == EnvironmentFile && o.ShowSecrets})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// provenanceOf returns the causes of the entries of a layer.
func provenanceOf(p bundle.Provenance, l bundle.Layer) bundle.Provenance {
	part := bundle.Provenance{}
	for _, id := range l.IDs() {
		if causes, ok := p[id]; ok {
			part[id] = causes
		}
	}
	return part
}

// Join is the reverse of LayerTree: it returns the bundle and the findings of a node from the trees of both layers. Like
// Read, it refuses edited files.
func Join(cluster, node map[string][]byte) (bundle.Bundle, bundle.Findings, error) {
	b := bundle.Bundle{Provenance: bundle.Provenance{}}
	var findings bundle.Findings
	for _, part := range []struct {
		layer *bundle.Layer
		tree  map[string][]byte
	}{{&b.Cluster, cluster}, {&b.Node, node}} {
		causes, err := readLayer(part.layer, part.tree)
		if err != nil {
			return bundle.Bundle{}, nil, err
		}
		maps.Copy(b.Provenance, causes)
		findings = append(findings, ReadFindings(part.tree)...)
	}
	if b.Cluster.Kind != bundle.LayerCluster || b.Node.Kind != bundle.LayerNode {
		return bundle.Bundle{}, nil, fmt.Errorf("%w: %s of another kind of layer", ErrNotPreview, LayerFile)
	}
	return b, findings.Sorted(), nil
}

// readLayer reads one layer and the causes of its entries.
func readLayer(l *bundle.Layer, tree map[string][]byte) (causes bundle.Provenance, err error) {
	var index bundle.Index
	dec := json.NewDecoder(bytes.NewReader(tree[LayerFile]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&index); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", ErrNotPreview, LayerFile, err)
	}
	*l = index.Layer
	if d, err := l.Digest(); err != nil || d != index.Digest {
		return nil, fmt.Errorf("%w: %s was edited: it does not match its digest", ErrNotPreview, LayerFile)
	}
	if err := readFiles(l, tree); err != nil {
		return nil, err
	}
	if tree[EnvironmentFile] != nil {
		if err := readEnvironment(l, tree); err != nil {
			return nil, err
		}
	}
	if data := tree[ProvenanceFile]; data != nil {
		if err := json.Unmarshal(data, &causes); err != nil {
			return nil, fmt.Errorf("%w: reading %s: %w", ErrNotPreview, ProvenanceFile, err)
		}
	}
	return causes, nil
}
