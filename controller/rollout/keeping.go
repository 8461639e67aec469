package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// keeper makes the bundles of nodes that wait for the executables of this operator: the published ones, with the
// changes that need no executables (render.Keep). So a mirror change reaches a host to which no executables can be copied.
type keeper struct {
	cache *layers.Cache
	// readDesired returns the desired state of a Node that this operator has signed, and ignores any other.
	readDesired windowsnode.DesiredReader
	log         logr.Logger
}

// keeping is one rendering's part of a keeper.
type keeping struct {
	*layers.Cache
	// made are the cluster layers that were made, by the published and the wanted layer.
	made map[[2]bundle.Digest]madeLayer
}

type madeLayer struct {
	layer      bundle.Layer
	digest     bundle.Digest
	provenance bundle.Provenance
	err        error
}

// keepWaitingBundles exchanges in the list the bundles of nodes that wait for the executables of that digest. It
// returns the published bundles of those, by node.
func (k *keeper) keepWaitingBundles(ctx context.Context, list []desired.Rendered, nodes []windowsnode.Node,
	payload bundle.Digest) map[string]published.Desired {
	waiting := map[string]published.Desired{}
	for _, n := range nodes {
		if n.IsJoined() && n.IsPayloadPending(payload) {
			if d, err := k.readDesired(n); err == nil {
				waiting[n.Name] = d
			}
		}
	}
	all := keeping{k.cache, map[[2]bundle.Digest]madeLayer{}}
	kept := map[string]published.Desired{}
	for i, n := range list {
		d, ok := waiting[n.Node.Name]
		if !ok || n.Own.Refused() {
			continue // one without a signature gets the whole bundle, which lists what its agent fetches
		}
		b, err := all.keptBundle(ctx, d, n.Bundle)
		if err != nil {
			k.log.Info("not updating node: payload not copied yet", "node", n.Node.Name, "error", err)
			continue
		}
		list[i].Bundle, kept[n.Node.Name] = b, d
	}
	return kept
}

// keptBundle returns the published bundle, with the changes of the wanted bundle that need no other executables.
func (k keeping) keptBundle(ctx context.Context, d published.Desired, want render.Bundle) (render.Bundle, error) {
	own, err := k.ReadLayer(ctx, d.Node)
	if err != nil {
		return render.Bundle{}, err
	}
	key := [2]bundle.Digest{d.Cluster.Digest, want.ClusterDigest}
	made, ok := k.made[key]
	if !ok {
		made = k.makeKeptLayer(ctx, d.Cluster, want)
		k.made[key] = made
	}
	if made.err != nil {
		return render.Bundle{}, made.err
	}
	digest, err := bundle.DigestLayers(made.digest, d.Node.Digest)
	return render.Bundle{
		Bundle: bundle.Bundle{Cluster: made.layer, Node: own, Provenance: made.provenance},
		Digest: digest, ClusterDigest: made.digest, NodeDigest: d.Node.Digest,
	}, err
}

func (k keeping) makeKeptLayer(ctx context.Context, l published.Layer, want render.Bundle) madeLayer {
	has, err := k.ReadLayer(ctx, l)
	if err != nil {
		return madeLayer{err: err}
	}
	if has.Stage != want.Cluster.Stage {
		return madeLayer{err: fmt.Errorf("the published layer is of stage %s, the wanted one of stage %s", has.Stage,
			want.Cluster.Stage)}
	}
	m := madeLayer{provenance: bundle.Provenance{}}
	if m.layer, m.err = render.Keep(has, want.Cluster); m.err != nil {
		return m
	}
	for _, id := range m.layer.IDs() {
		if refs, ok := want.Provenance[id]; ok {
			m.provenance[id] = refs
		}
	}
	m.digest, m.err = m.layer.Digest()
	return m
}

// inputsOfKeptBundle returns the inputs that a kept bundle is made from: mirrors, and the findings about them, change
// without executables; settings stay as they are published.
func inputsOfKeptBundle(now []published.Input, d published.Desired) []published.Input {
	ofMirrors := func(i published.Input) bool {
		return i == published.InputMirrors || i == published.InputUnreachableImages
	}
	inputs := slices.DeleteFunc(slices.Clone(now), func(i published.Input) bool { return !ofMirrors(i) })
	for _, i := range d.Inputs {
		if !ofMirrors(i) {
			inputs = append(inputs, i)
		}
	}
	return inputs
}
