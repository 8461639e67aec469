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

// costs knows what changes cost: the impact of the difference between the bundle that a node has and the one that it gets. Layers and
// differences never change, so they are kept while a node needs them.
type costs struct {
	layers *layers.Cache
	// round has the layers of this snapshot.
	round        *layers.Round
	known, still map[step]bundle.Impact
}

// step is a change from one bundle to another one, by their layers; the node layers are empty if they are the same.
type step struct{ from, to [2]bundle.Digest }

// beginSnapshot begins a snapshot: what is not used until its end is forgotten.
func (c *costs) beginSnapshot(r Rendered) {
	c.round, c.still = c.layers.BeginRound("compared"), map[step]bundle.Impact{}
	for _, w := range r.Wanted {
		c.round.AddLayer(w.Cluster.Digest, w.Content.Cluster)
		c.round.AddLayer(w.Own.Digest, w.Content.Node)
	}
}

func (c *costs) endSnapshot() {
	c.round.EndRound()
	c.known = c.still
}

// impactOf returns the impact for a node that has a bundle of these layers.
func (c *costs) impactOf(has bundle.Bundle, layers []bundle.Digest, w Wanted) bundle.Impact {
	s, next := step{[2]bundle.Digest(layers), [2]bundle.Digest{w.Cluster.Digest, w.Own.Digest}}, *w.Content
	if s.from[1] == s.to[1] { // an entry is in one layer alone (bundle.Bundle.Check): the comparison is the same for all nodes with these cluster layers
		s.from[1], s.to[1] = "", ""
		has.Node, next.Node = bundle.Layer{}, bundle.Layer{}
	}
	impact, ok := c.known[s]
	if !ok {
		if impact, ok = c.still[s]; !ok {
			impact = bundle.Diff(has, next).Impact()
		}
	}
	c.still[s] = impact
	return impact
}

// appliedBundle returns the bundle that a node has; false where it is not known.
func (c *costs) appliedBundle(ctx context.Context, has published.Report, node windowsnode.Node) (bundle.Bundle, bool) {
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
// reports, so what is returned is compared with what is wanted, and never published: see told.
func (c *costs) layerByDigest(ctx context.Context, d bundle.Digest, node windowsnode.Node) (bundle.Layer, bool) {
	from := published.Layer{Digest: d}
	if on := node.Desired.Node; on.Digest == d { // unverified: the layer is checked by its digest
		from = on
	}
	l, err := c.round.ReadLayer(ctx, from)
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
		from, known := e.costs.layers.LookupLayer(n.Report.Layers[0])
		own, both := e.costs.layers.LookupLayer(n.Report.Layers[1])
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
