package steps

import (
	"context"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// Urgent is what of a rendering must not wait, for nodes with one cluster layer.
type Urgent struct {
	// Layer is the cluster layer that they have with the urgent changes; zero if there are none.
	Layer  bundle.Layer
	Inputs []plan.UrgentInput
	// Mixed lists urgent inputs that cannot be separated from other changes.
	Mixed string
}

// urgentLayer is the urgent change for the nodes that have one cluster layer, and for which another one is rendered.
type urgentLayer struct {
	Urgent
	// packed is nil if nothing is urgent.
	packed *published.Packed
	cost   bundle.Impact
}

// comparison compares what nodes have with what they get, for one snapshot.
type comparison struct {
	layers *layers.Cache
	// find finds the urgent changes (Rendered.Urgent).
	find func(has bundle.Layer) (Urgent, error)
	// before is what the last snapshot has found out, found what this one has.
	before, found compared
}

// compared is what was found out about layers by their digests. Neither they nor their differences ever change.
type compared struct {
	impacts map[layerChange]bundle.Impact
	urgents map[[2]bundle.Digest]*urgentLayer
}

// layerChange is one from one bundle to another one, by their layers; the node layers are empty if they are the same.
type layerChange struct{ from, to [2]bundle.Digest }

// newComparison begins to compare nodes with their rendered bundles.
func newComparison(cache *layers.Cache, before compared, wanted map[string]layers.Wanted,
	find func(bundle.Layer) (Urgent, error)) *comparison {
	for _, w := range wanted {
		cache.AddLayer(w.Cluster.Digest, w.Content.Cluster)
		cache.AddLayer(w.Own.Digest, w.Content.Node)
	}
	return &comparison{cache, find, before, compared{map[layerChange]bundle.Impact{},
		map[[2]bundle.Digest]*urgentLayer{}}}
}

// impactOf returns the impact for a node that has a bundle of these layers.
func (c *comparison) impactOf(has bundle.Bundle, digests []bundle.Digest, w layers.Wanted) bundle.Impact {
	s, next := layerChange{[2]bundle.Digest(digests), [2]bundle.Digest{w.Cluster.Digest, w.Own.Digest}}, *w.Content
	// an entry is in one layer alone (bundle.Bundle.Check): the comparison is the same for all nodes with these cluster
	// layers
	if s.from[1] == s.to[1] {
		s.from[1], s.to[1] = "", ""
		has.Node, next.Node = bundle.Layer{}, bundle.Layer{}
	}
	impact, ok := c.found.impacts[s]
	if !ok {
		if impact, ok = c.before.impacts[s]; !ok {
			impact = bundle.Diff(has, next).Impact()
		}
		c.found.impacts[s] = impact
	}
	return impact
}

// appliedBundle returns the bundle that a node has; false where it is not known.
func (c *comparison) appliedBundle(ctx context.Context, has published.Report,
	node windowsnode.Node) (bundle.Bundle, bool) {
	if !reportsLayers(has) {
		return bundle.Bundle{}, false
	}
	var both [2]bundle.Layer
	for i, d := range has.Layers {
		l, ok := c.layerByDigest(ctx, d, node)
		if !ok {
			return bundle.Bundle{}, false
		}
		both[i] = l
	}
	return bundle.Bundle{Cluster: both[0], Node: both[1]}, true
}

// reportsLayers reports whether a node reports its layers, and they are those of the bundle that it reports:
// the report of a node is not trusted.
func reportsLayers(has published.Report) bool {
	if has.Applied == "" || len(has.Layers) != 2 {
		return false
	}
	d, err := bundle.DigestLayers(has.Layers[0], has.Layers[1])
	return err == nil && d == has.Applied
}

// layerByDigest returns a layer by its digest: one that is known, that is inline on the Node, or that Secrets hold. A node
// chooses the digest by its report, so the returned layer is compared with the wanted one, and never published: see
// nodeMemory.signed.
func (c *comparison) layerByDigest(ctx context.Context, d bundle.Digest, node windowsnode.Node) (bundle.Layer, bool) {
	from := published.Layer{Digest: d}
	if on := node.Desired.Node; on.Digest == d { // unverified: the layer is checked by its digest
		from = on
	}
	l, err := c.layers.ReadLayer(ctx, from)
	return l, err == nil // if not, the node agent is asked what the change costs
}

// compareNode computes the impact of a node's change, and its urgent part. Signed is the desired state that the operator
// has signed for the bundle on the node; nil if there is none. If a layer on the node cannot be read, both are unknown.
func (c *comparison) compareNode(ctx context.Context, n *plan.Node, node windowsnode.Node, signed *published.Desired,
	to layers.Wanted) (layers.Wanted, error) {
	has, known := c.appliedBundle(ctx, n.Report, node)
	if !known {
		return layers.Wanted{}, nil
	}
	n.Cost = c.impactOf(has, n.Report.Layers, to)
	if signed == nil { // an urgent layer is signed with the rest of the node's bundle, so the operator must have chosen that
		return layers.Wanted{}, nil
	}
	var how layers.Wanted
	var err error
	n.Urgent, how, err = c.urgentFor(has, *signed, to)
	return how, err
}

// urgentFor returns the urgent changes for a node that has a signed bundle, and how they are published.
func (c *comparison) urgentFor(has bundle.Bundle, signed published.Desired, to layers.Wanted) (plan.Urgent,
	layers.Wanted, error) {
	on := [2]bundle.Digest{signed.Cluster.Digest, signed.Node.Digest}
	if c.find == nil || on[0] == to.Cluster.Digest {
		return plan.Urgent{}, layers.Wanted{}, nil
	}
	l, err := c.urgentLayerBetween(has.Cluster, [2]bundle.Digest{on[0], to.Cluster.Digest})
	if err != nil {
		return plan.Urgent{}, layers.Wanted{}, err
	}
	found := plan.Urgent{Mixed: l.Mixed}
	if l.packed == nil {
		return found, layers.Wanted{}, nil
	}
	own, err := c.layers.PackLayer(on[1], has.Node)
	if err != nil {
		return plan.Urgent{}, layers.Wanted{}, err
	}
	// Executables and inputs are those that were signed with the node's bundle.
	w := layers.Wanted{Node: to.Node, Cluster: l.packed, Own: *own, Inputs: signed.Inputs, Payload: signed.Payload}
	if w.Bundle, err = bundle.DigestLayers(w.Cluster.Digest, own.Digest); err != nil {
		return plan.Urgent{}, layers.Wanted{}, err
	}
	if w.Bundle == to.Bundle {
		w = to
	}
	found.Bundle, found.Cost, found.Inputs = w.Bundle, l.cost, l.Inputs
	return found, w, nil
}

// urgentLayerBetween returns the urgent changes between two cluster layers.
func (c *comparison) urgentLayerBetween(has bundle.Layer, between [2]bundle.Digest) (*urgentLayer, error) {
	for _, known := range []compared{c.found, c.before} {
		if l, ok := known.urgents[between]; ok {
			c.found.urgents[between] = l
			return l, nil
		}
	}
	found, err := c.find(has)
	if err != nil {
		return nil, fmt.Errorf("finding urgent changes: %w", err)
	}
	l := &urgentLayer{Urgent: found}
	if len(found.Inputs) > 0 {
		digest, err := found.Layer.Digest()
		if err != nil {
			return nil, fmt.Errorf("packing urgent changes: %w", err)
		}
		if l.packed, err = c.layers.PackLayer(digest, found.Layer); err != nil {
			return nil, fmt.Errorf("packing urgent changes: %w", err)
		}
		l.cost = bundle.Diff(bundle.Bundle{Cluster: has}, bundle.Bundle{Cluster: found.Layer}).Impact()
	}
	c.found.urgents[between] = l
	return l, nil
}

// describeChanges names the changes of the highest impact.
func describeChanges(changes bundle.Changes) string {
	const most = 3
	var parts []string
	for _, c := range changes {
		text := string(c.Entry)
		if len(c.Causes) > 0 {
			var causes []string
			for _, ref := range c.Causes[:min(len(c.Causes), most)] {
				causes = append(causes, ref.String())
			}
			text += " (from " + strings.Join(causes, ", ") + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return "it changes " + bundle.JoinFirst(parts, most, ", ", func(left int) string {
		return fmt.Sprintf(", %d more", left)
	})
}
