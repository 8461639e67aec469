package inuse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather/objects"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/windowsnode"
)

// Layers are those that nodes have, by digest.
type Layers map[bundle.Digest]bundle.Layer

// ReadLayers reads the layers that are published for nodes or applied on them. What cannot be read is missing, and in
// the notes.
func ReadLayers(ctx context.Context, r objects.Reader, namespace string, nodes []windowsnode.Node) (Layers, []string, error) {
	found, wanted := Layers{}, map[string]bundle.Digest{}
	for _, n := range nodes {
		if n.DesiredError == nil {
			for _, l := range []published.Layer{n.Desired.Cluster, n.Desired.Node} {
				if opened, err := l.Open(nil); l.Parts == 0 && err == nil {
					found[l.Digest] = opened
				} else {
					wanted[l.Label()] = l.Digest
				}
			}
		}
		for _, digest := range n.Report.Layers {
			wanted[published.Label(digest)] = digest
		}
	}
	var wants []objects.Want
	for label, digest := range wanted {
		if _, ok := found[digest]; !ok {
			wants = append(wants, objects.Want{
				Version: "v1", Kind: "Secret", Namespace: namespace,
				Labels: map[string]string{published.LayerLabel: label},
			})
		}
	}
	slices.SortFunc(wants, func(a, b objects.Want) int {
		return cmp.Compare(a.Labels[published.LayerLabel], b.Labels[published.LayerLabel])
	})
	set, err := r.Read(ctx, wants)
	if err != nil {
		return nil, nil, err
	}
	secrets := map[string][]corev1.Secret{}
	for _, o := range set.Objects {
		var s corev1.Secret
		if err := json.Unmarshal(o.JSON, &s); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", o.Ref, err)
		}
		label := s.Labels[published.LayerLabel]
		secrets[label] = append(secrets[label], s)
	}
	for label, digest := range wanted {
		if opened, err := layers.OpenLayer(digest, secrets[label]); err == nil {
			found[digest] = opened
		}
	}
	var notes []string
	for _, f := range set.Findings {
		notes = append(notes, f.Message+" (fix: "+f.Fix+")")
	}
	slices.Sort(notes)
	return found, slices.Compact(notes), nil
}

// Open returns the bundle of two layers, if both are known.
func (l Layers) Open(cluster, node bundle.Digest) (bundle.Bundle, bool) {
	c, ok := l[cluster]
	n, both := l[node]
	return bundle.Bundle{Cluster: c, Node: n}, ok && both
}

// errNoLayer means that a layer was not read.
var errNoLayer = errors.New("the layers that are published for it cannot be read")

// OpenSigned returns the bundle that is published for a node. It is an error if none of the keys has signed that, or a
// layer is not known.
func (l Layers) OpenSigned(n windowsnode.Node, keys published.Keys) (bundle.Bundle, error) {
	d, err := keys.Open(n.Annotations[published.DesiredAnnotation])
	switch {
	case n.Annotations[published.DesiredAnnotation] == "":
		return bundle.Bundle{}, errors.New("nothing is published for it")
	case err != nil:
		return bundle.Bundle{}, fmt.Errorf("its published bundle does not count: %w", err)
	case !d.IsSignedFor(n.ID()):
		return bundle.Bundle{}, fmt.Errorf("its published bundle does not count: %w", signing.ErrOtherNode)
	}
	b, ok := l.Open(d.Cluster.Digest, d.Node.Digest)
	if !ok {
		return b, errNoLayer
	}
	return b, nil
}

// ReadSigned returns the bundles that the operator has published for nodes and signed with one of the keys, which are
// in PEM, by the names of the nodes; and why there is none, for the others.
func ReadSigned(
	ctx context.Context, r objects.Reader, namespace string, keys []byte, names []string,
) (map[string]bundle.Bundle, map[string]string, error) {
	found, why := map[string]bundle.Bundle{}, map[string]string{}
	trusted, err := published.DecodeKeys(keys)
	if err != nil {
		for _, name := range names {
			why[name] = "the keys with which the operator signs are not known"
		}
		return found, why, nil
	}
	set, err := r.Read(ctx, []objects.Want{{Version: "v1", Kind: "Node", Names: names}})
	if err != nil {
		return nil, nil, err
	}
	var nodes []windowsnode.Node
	for _, o := range set.Objects {
		n, err := fleet.DecodeNode(o)
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, n)
	}
	known, notes, err := ReadLayers(ctx, r, namespace, nodes)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		b, err := known.OpenSigned(n, trusted)
		switch {
		case err == nil:
			found[n.Name] = b
		case len(notes) > 0:
			why[n.Name] = notes[0]
		default:
			why[n.Name] = err.Error()
		}
	}
	return found, why, nil
}
