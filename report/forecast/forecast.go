package forecast

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/render"
	"wmco/report/inuse"
)

// Change is the change that is to be predicted.
type Change struct {
	// Before and After are the hosts rendered from the cluster's objects and from the changed ones. A node that After
	// lacks does not change.
	Before, After []desired.Rendered
	Platform      bundle.Platform
	// Settings are those of the changed objects.
	Settings render.Settings
	// Namespace is that of the operator.
	Namespace string
	Now       time.Time
}

// Forecast is what the rollout of a change will do.
type Forecast struct {
	plan.Prediction
	// Notes list unknown facts, the missing right, and when windows for changes open.
	Notes []string
}

// Make reads the Nodes and the layers that they have, and predicts the rollout. Findings are about Nodes that cannot be
// read. Without the right to read layers, the impact is that of the difference between the objects.
func Make(ctx context.Context, r objects.Reader, c Change) (Forecast, bundle.Findings, error) {
	set, err := r.Read(ctx, []objects.Want{fleet.WantNodes()})
	if err != nil || set.Findings.Refused() {
		return Forecast{}, set.Findings, err
	}
	var nodes []windowsnode.Node
	for _, o := range set.Objects {
		n, err := fleet.DecodeNode(o)
		if err != nil {
			return Forecast{}, nil, err
		}
		nodes = append(nodes, n)
	}
	known, notes, err := inuse.ReadLayers(ctx, r, c.Namespace, nodes)
	if err != nil {
		return Forecast{}, nil, err
	}
	// Durations are printed, so they are whole seconds, as the times on the Nodes.
	f := plan.Fleet{Policy: fleet.PolicyAt(c.Settings, c.Now), Now: c.Now.Truncate(time.Second)}
	guess := guesses{layers: known}
	var unadopted []plan.Status
	for _, n := range nodes {
		if s, waits := adoptionStatus(n, c.Settings); waits {
			unadopted = append(unadopted, s)
			continue
		}
		f.Nodes = append(f.Nodes, guess.plannedNode(c, n))
	}
	f = plan.ElapsedByStamps(f)
	predicted := plan.PredictRollout(f, plan.LearnDurations(f))
	predicted.Left = append(predicted.Left, unadopted...)
	notes = append(notes, guess.unmeasuredNotes()...)
	return Forecast{Prediction: predicted, Notes: append(notes, windowNotes(predicted.Order, f.Policy.Closed)...)}, nil, nil
}

// windowNotes say when the windows open that turns wait for.
func windowNotes(order []plan.Change, closed plan.Closed) []string {
	var notes []string
	for _, x := range []struct {
		impact bundle.Impact
		opens  time.Time
	}{{bundle.ImpactRestart, closed.Restart}, {bundle.ImpactDrain, closed.Drain}, {bundle.ImpactReboot, closed.Reboot}} {
		has := slices.ContainsFunc(order, func(c plan.Change) bool { return c.Impact == x.impact })
		if has && !x.opens.IsZero() {
			notes = append(
				notes,
				fmt.Sprintf(
					"updates with impact %s wait for a window of rollout.windows; the next one opens at %s", x.impact,
					x.opens.UTC().Format(time.RFC3339),
				),
			)
		}
	}
	return notes
}

// guesses collects facts about nodes, one after the other.
type guesses struct {
	layers inuse.Layers
	// pending have something else published than the cluster's objects give, blind are nodes whose layers are not
	// known.
	pending, blind, without []string
}

// plannedNode returns a node with its bundle after the change.
func (g *guesses) plannedNode(c Change, object windowsnode.Node) plan.Node {
	n := plan.ObserveNode(object, object.Desired, object.DesiredError)
	n.Silent = windowsnode.Silence(windowsnode.SilenceByKubelet).IsSilent(object)
	n.Group.Platform, n.Wanted = c.Platform, n.Published
	after, ok := findRendered(c.After, n.Name)
	if !ok {
		return n
	}
	if after.Node.Incomplete() {
		g.without = append(g.without, n.Name)
		return n
	}
	n.Target = plan.TargetDigest(after.Bundle.ClusterDigest, after.Bundle.Node)
	if object.DesiredError != nil {
		n.Wanted = proposedDigest(n.Name)
		return n
	}
	before, both := findRendered(c.Before, n.Name)
	has, exact := g.layers.Open(object.Desired.Cluster.Digest, object.Desired.Node.Digest)
	if !exact {
		g.blind = append(g.blind, n.Name)
		if changes := bundle.Diff(before.Bundle.Bundle, after.Bundle.Bundle); !both || len(changes) > 0 {
			n.Wanted, n.Cost = proposedDigest(n.Name), changes.Impact()
		}
		return n
	}
	if both && len(changesOf(has, before)) > 0 {
		g.pending = append(g.pending, n.Name)
	}
	changes := changesOf(has, after)
	if len(changes) > 0 {
		n.Wanted = proposedDigest(n.Name)
	}
	n.Cost = changes.Impact()
	if n.Report.Applied != n.Published {
		n.Cost = ""
		if applied, ok := g.appliedBundle(n.Report); ok {
			n.Cost = changesOf(applied, after).Impact()
		}
	}
	return n
}

// appliedBundle returns the bundle that a node reports as applied.
func (g *guesses) appliedBundle(r published.Report) (bundle.Bundle, bool) {
	if len(r.Layers) != 2 {
		return bundle.Bundle{}, false
	}
	return g.layers.Open(r.Layers[0], r.Layers[1])
}

// changesOf returns what changes on a node that has a bundle. What the inputs did not decide stays as it is:
// executables without a payload, signing keys that are not known, and authorized keys, which only the operator knows
// (bundle.Kind.LastStays).
func changesOf(has bundle.Bundle, to desired.Rendered) bundle.Changes {
	want := desired.KeepExecutables(to.Bundle.Bundle, has)
	want.Cluster.Files = withSigningKeys(want.Cluster.Files, has.Cluster.Files)
	if len(want.Node.AuthorizedKeys) == 0 {
		want.Node.AuthorizedKeys = has.Node.AuthorizedKeys
	}
	return bundle.Diff(has, want)
}

// withSigningKeys returns files with those keys of others, where they bring none.
func withSigningKeys(list, others []bundle.File) []bundle.File {
	is := func(f bundle.File) bool { return f.Path == bundle.SigningKeysFile }
	i := slices.IndexFunc(others, is)
	if i < 0 || slices.ContainsFunc(list, is) {
		return list
	}
	return append(slices.Clone(list), others[i])
}

func findRendered(list []desired.Rendered, name string) (desired.Rendered, bool) {
	if i := slices.IndexFunc(list, func(r desired.Rendered) bool { return r.Node.Name == name }); i >= 0 {
		return list[i], true
	}
	return desired.Rendered{}, false
}

// proposedDigest stands for the digest of a bundle, which only the operator knows: it has the key of the digests of
// secrets.
func proposedDigest(node string) bundle.Digest {
	return bundle.Of(fmt.Appendf(nil, "proposed for %s", node))
}

func (g *guesses) unmeasuredNotes() []string {
	var notes []string
	for _, x := range []struct {
		nodes []string
		text  string
	}{
		{
			g.pending,
			"the published bundle differs from what the objects of the cluster give now: a change is under way, " +
				"or the operator has another version than this program. The forecast has all of it",
		},
		{g.blind, "the layers of the node cannot be read: its impact is that of the difference between the objects"},
		{g.without, "the node has not reported facts: nothing is predicted for it"},
	} {
		if len(x.nodes) > 0 {
			notes = append(notes, firstNames(x.nodes, plainName)+": "+x.text)
		}
	}
	return notes
}

// firstNames names the first nodes of a list.
func firstNames(names []string, style func(string) string) string {
	var shown []string
	for _, name := range names {
		shown = append(shown, style(name))
	}
	return bundle.JoinFirst(shown, 3, ", ", bundle.AndOthers)
}

func plainName(name string) string { return name }
