package steps

import (
	"context"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/windowsnode"
)

// comparison compares what nodes have with what they get, for one snapshot.
type comparison struct {
	// layers are those that the snapshot needs.
	layers *layers.Round
	// before is what the last snapshot has found out, found what this one has.
	before, found compared
}

// compared is what was found out about layers by their digests. Neither they nor their differences ever change.
type compared struct {
	impacts map[step]bundle.Impact
	urgents map[[2]bundle.Digest]*urgentLayer
}

// step is a change from one bundle to another one, by their layers; the node layers are empty if they are the same.
type step struct{ from, to [2]bundle.Digest }

// newComparison begins to compare nodes with what is rendered for them.
func newComparison(cache *layers.Cache, before compared, r Rendered) *comparison {
	c := &comparison{cache.BeginRound("compared"), before, compared{map[step]bundle.Impact{}, map[[2]bundle.Digest]*urgentLayer{}}}
	for _, w := range r.Wanted {
		c.layers.AddLayer(w.Cluster.Digest, w.Content.Cluster)
		c.layers.AddLayer(w.Own.Digest, w.Content.Node)
	}
	return c
}

// end returns what the next comparison begins with: what this one has not asked for is forgotten, layers too.
func (c *comparison) end() compared {
	c.layers.EndRound()
	return c.found
}

// impactOf returns the impact for a node that has a bundle of these layers.
func (c *comparison) impactOf(has bundle.Bundle, layers []bundle.Digest, w Wanted) bundle.Impact {
	s, next := step{[2]bundle.Digest(layers), [2]bundle.Digest{w.Cluster.Digest, w.Own.Digest}}, *w.Content
	if s.from[1] == s.to[1] { // an entry is in one layer alone (bundle.Bundle.Check): the comparison is the same for all nodes with these cluster layers
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
func (c *comparison) appliedBundle(ctx context.Context, has published.Report, node windowsnode.Node) (bundle.Bundle, bool) {
	if !reportsLayers(has) {
		return bundle.Bundle{}, false
	}
	var layers [2]bundle.Layer
	for i, d := range has.Layers {
		l, ok := c.layerByDigest(ctx, d, node)
		if !ok {
			return bundle.Bundle{}, false
		}
		layers[i] = l
	}
	return bundle.Bundle{Cluster: layers[0], Node: layers[1]}, true
}

// reportsLayers reports whether a node says which layers it has, and they are those of the bundle that it says it has: the report of a node is not
// trusted.
func reportsLayers(has published.Report) bool {
	if has.Applied == "" || len(has.Layers) != 2 {
		return false
	}
	d, err := bundle.DigestLayers(has.Layers[0], has.Layers[1])
	return err == nil && d == has.Applied
}

// layerByDigest returns a layer by its digest: one that is known, that stands on the Node, or that Secrets hold. A node chooses the digest by what it
// reports, so what is returned is compared with what is wanted, and never published: see nodeMemory.signed.
func (c *comparison) layerByDigest(ctx context.Context, d bundle.Digest, node windowsnode.Node) (bundle.Layer, bool) {
	from := published.Layer{Digest: d}
	if on := node.Desired.Node; on.Digest == d { // unverified: the layer is checked by its digest
		from = on
	}
	l, err := c.layers.ReadLayer(ctx, from)
	return l, err == nil // if not, the node agent is asked what the change costs
}

// failureCause names what the bundle of failed nodes changes, and which objects caused that. A full disk, a damaged layer and a locked file are no
// fault of an object.
func (e *Executor) failureCause(v view, r Rendered) string {
	for _, n := range v.Nodes {
		w, ok := r.Wanted[n.Name]
		if !ok || n.Published != n.Wanted || n.Report.Desired != n.Wanted || !n.Report.BlamesInput() || len(n.Report.Layers) != 2 {
			continue
		}
		from, known := e.Layers.LookupLayer(n.Report.Layers[0])
		own, both := e.Layers.LookupLayer(n.Report.Layers[1])
		if !known || !both {
			continue
		}
		to := *w.Content
		if to.Provenance == nil && r.Provenance != nil {
			to.Provenance = r.Provenance(n.Name)
		}
		return describeChanges(bundle.Diff(bundle.Bundle{Cluster: from, Node: own}, to))
	}
	return ""
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
	return "it changes " + bundle.JoinFirst(parts, most, ", ", func(left int) string { return fmt.Sprintf(", %d more", left) })
}
