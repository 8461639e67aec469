package steps

import (
	"context"
	"fmt"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// Urgent is what of a rendering must not wait, for nodes with one cluster layer.
type Urgent struct {
	// Layer is the cluster layer that they have with what is urgent; zero if nothing is.
	Layer  bundle.Layer
	Inputs []plan.UrgentInput
	// Mixed says what is urgent and cannot be separated from other changes.
	Mixed string
}

// urgentLayer is what is urgent for the nodes that have one cluster layer, and for which another one is rendered.
type urgentLayer struct {
	Urgent
	// packed is nil if nothing is urgent.
	packed *published.Packed
	cost   bundle.Impact
}

// urgentFor returns what is urgent for a node that has a bundle of which it was told, and how it is published.
func (c *comparison) urgentFor(has bundle.Bundle, told published.Desired, node windowsnode.Node, to destination) (plan.Urgent, layers.Wanted, error) {
	on := [2]bundle.Digest{told.Cluster.Digest, told.Node.Digest}
	if to.find == nil || on[0] == to.Cluster.Digest {
		return plan.Urgent{}, layers.Wanted{}, nil
	}
	l, err := c.urgentLayerBetween(has.Cluster, [2]bundle.Digest{on[0], to.Cluster.Digest}, to)
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
	// Executables and inputs are those that the node has been told of with this bundle: no others belong to what it has.
	w := layers.Wanted{Node: node.Name, Cluster: l.packed, Own: *own, Inputs: told.Inputs, Payload: told.Payload}
	if w.Bundle, err = bundle.DigestLayers(w.Cluster.Digest, own.Digest); err != nil {
		return plan.Urgent{}, layers.Wanted{}, err
	}
	if w.Bundle == to.Bundle {
		w = to.Wanted.Wanted
	}
	found.Bundle, found.Cost, found.Inputs = w.Bundle, l.cost, l.Inputs
	return found, w, nil
}

// urgentLayerBetween returns what is urgent between two cluster layers.
func (c *comparison) urgentLayerBetween(has bundle.Layer, between [2]bundle.Digest, to destination) (*urgentLayer, error) {
	for _, known := range []compared{c.found, c.before} {
		if l, ok := known.urgents[between]; ok {
			c.found.urgents[between] = l
			return l, nil
		}
	}
	found, err := to.find(has)
	if err != nil {
		return nil, fmt.Errorf("finding what is urgent: %w", err)
	}
	l := &urgentLayer{Urgent: found}
	if len(found.Inputs) > 0 {
		digest, err := found.Layer.Digest()
		if err != nil {
			return nil, fmt.Errorf("packing what is urgent: %w", err)
		}
		if l.packed, err = c.layers.PackLayer(digest, found.Layer); err != nil {
			return nil, fmt.Errorf("packing what is urgent: %w", err)
		}
		l.cost = bundle.Diff(bundle.Bundle{Cluster: has}, bundle.Bundle{Cluster: found.Layer}).Impact()
	}
	c.found.urgents[between] = l
	return l, nil
}

// destination is what is rendered for a node, and what finds the urgent part of it.
type destination struct {
	Wanted
	find func(has bundle.Layer) (Urgent, error)
}

// toldUrgent returns what is urgent for nodes and stands on them, also since the snapshot was made.
func (e *Executor) toldUrgent(v view) []layers.Wanted {
	var list []layers.Wanted
	for _, n := range v.Nodes {
		u, told := v.urgent[n.Name], n.Published
		if node := e.memory.ofNode(n.Name).written; node != nil {
			told = node.Desired.Bundle // what this executor has written itself
		}
		if u.Bundle != "" && u.Bundle == told && u.Bundle != n.Wanted {
			list = append(list, u)
		}
	}
	return list
}

// compareNode finds out what the change of a node costs, and what of it must not wait. Where a layer that the node has cannot be read, neither is
// known.
func (c *comparison) compareNode(ctx context.Context, n *plan.Node, node windowsnode.Node, m *nodeMemory, to destination) (layers.Wanted, error) {
	has, known := c.appliedBundle(ctx, n.Report, node)
	if !known {
		return layers.Wanted{}, nil
	}
	n.Cost = c.impactOf(has, n.Report.Layers, to.Wanted)
	told, ok := m.toldDesired(n.Report.Applied)
	if !ok { // what is urgent is signed with the rest of what the node has, so the operator must have chosen that
		return layers.Wanted{}, nil
	}
	var how layers.Wanted
	var err error
	n.Urgent, how, err = c.urgentFor(has, told, node, to)
	return how, err
}
