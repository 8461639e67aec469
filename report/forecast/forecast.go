package forecast

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/render"
	"wmco/report/fleet"
)

// Change is what is about to be changed.
type Change struct {
	// Before and After are the hosts rendered from the cluster's objects and from the changed ones. A node that After lacks does not
	// change.
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
	// Notes say what is not known, which right is missing, and when windows for changes open.
	Notes []string
}

// Make reads the Nodes and the layers that they have, and predicts the rollout. Findings are about Nodes that cannot be read. Without
// the right to read layers, the impact is that of the difference between the objects.
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
	known, notes, err := readLayers(ctx, r, c.Namespace, nodes)
	if err != nil {
		return Forecast{}, nil, err
	}
	// Durations are printed, so they are whole seconds, as the times on the Nodes.
	f := plan.Fleet{Policy: fleet.PolicyAt(c.Settings, c.Now), Now: c.Now.Truncate(time.Second)}
	guess := guesses{layers: known}
	var unadopted []plan.Status
	for _, n := range nodes {
		if s, waits := adoptionStatus(n); waits {
			unadopted = append(unadopted, s)
			continue
		}
		f.Nodes = append(f.Nodes, guess.node(c, n))
	}
	f = plan.ElapsedByStamps(f)
	predicted := plan.PredictRollout(f, plan.LearnDurations(f))
	predicted.Left = append(predicted.Left, unadopted...)
	notes = append(notes, guess.notes()...)
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
			notes = append(notes, fmt.Sprintf("turns with impact %s wait for a window of rollout.windows; the next one opens at %s", x.impact, x.opens.UTC().Format(time.RFC3339)))
		}
	}
	return notes
}

// guesses is what is found out about nodes, one after the other.
type guesses struct {
	layers map[bundle.Digest]bundle.Layer
	// pending have something else published than the cluster's objects give, blind are nodes whose layers are not known.
	pending, blind, without []string
}

// node returns a node with what is wanted after the change.
func (g *guesses) node(c Change, object windowsnode.Node) plan.Node {
	n := plan.ObserveNode(object, windowsnode.ReadUnverified)
	n.Silent = windowsnode.Silence(windowsnode.SilenceByKubelet).IsSilent(object)
	n.Group.Platform, n.Wanted = c.Platform, n.Published
	after, ok := find(c.After, n.Name)
	if !ok {
		return n
	}
	if after.Node.Incomplete() {
		g.without = append(g.without, n.Name)
		return n
	}
	n.Target = plan.TargetDigest(after.Bundle.ClusterDigest, after.Bundle.Node)
	if object.DesiredError != nil {
		n.Wanted = proposed(n.Name)
		return n
	}
	before, both := find(c.Before, n.Name)
	has, exact := g.open(object.Desired.Cluster.Digest, object.Desired.Node.Digest)
	if !exact {
		g.blind = append(g.blind, n.Name)
		if changes := bundle.Diff(before.Bundle.Bundle, after.Bundle.Bundle); !both || len(changes) > 0 {
			n.Wanted, n.Cost = proposed(n.Name), changes.Impact()
		}
		return n
	}
	if both && len(difference(has, before)) > 0 {
		g.pending = append(g.pending, n.Name)
	}
	changes := difference(has, after)
	if len(changes) > 0 {
		n.Wanted = proposed(n.Name)
	}
	n.Cost = changes.Impact()
	if n.Report.Applied != n.Published {
		n.Cost = ""
		if applied, ok := g.applied(n.Report); ok {
			n.Cost = difference(applied, after).Impact()
		}
	}
	return n
}

// applied returns the bundle that a node says it has.
func (g *guesses) applied(r published.Report) (bundle.Bundle, bool) {
	if len(r.Layers) != 2 {
		return bundle.Bundle{}, false
	}
	return g.open(r.Layers[0], r.Layers[1])
}

func (g *guesses) open(cluster, node bundle.Digest) (bundle.Bundle, bool) {
	c, ok := g.layers[cluster]
	n, both := g.layers[node]
	return bundle.Bundle{Cluster: c, Node: n}, ok && both
}

// difference returns what changes on a node that has a bundle. Without a payload, executables and the path of the agent's stay as they are.
func difference(has bundle.Bundle, to desired.Rendered) bundle.Changes {
	want := to.Bundle.Bundle
	if !slices.ContainsFunc(want.Payload(), func(p bundle.Payload) bool { return p.Digest != "" }) {
		want.Cluster.Payload, want.Node.Payload = has.Cluster.Payload, has.Node.Payload
		want.Cluster.Services = withAgent(want.Cluster.Services, has.Cluster.Services)
	}
	return bundle.Diff(has, want)
}

// withAgent returns services in which the agent's command is that of others: its path has the digest of the executable.
func withAgent(list, others []bundle.Service) []bundle.Service {
	is := func(s bundle.Service) bool { return s.Name == bundle.AgentService }
	i, k := slices.IndexFunc(list, is), slices.IndexFunc(others, is)
	if i < 0 || k < 0 {
		return list
	}
	list = slices.Clone(list)
	list[i].Argv, list[i].Reads = others[k].Argv, others[k].Reads
	return list
}

func find(list []desired.Rendered, name string) (desired.Rendered, bool) {
	if i := slices.IndexFunc(list, func(r desired.Rendered) bool { return r.Node.Name == name }); i >= 0 {
		return list[i], true
	}
	return desired.Rendered{}, false
}

// proposed stands for the digest of a bundle, which only the operator knows: it has the key of the digests of secrets.
func proposed(node string) bundle.Digest {
	return bundle.Of(fmt.Appendf(nil, "what is proposed for %s", node))
}

func (g *guesses) notes() []string {
	var notes []string
	for _, x := range []struct {
		nodes []string
		text  string
	}{
		{g.pending, "the published bundle differs from what the objects of the cluster give now: a change is under way, or the operator has another version than this program. The forecast has all of it"},
		{g.blind, "the layers of the node cannot be read: its impact is that of the difference between the objects"},
		{g.without, "the node has not reported facts: nothing is predicted for it"},
	} {
		if len(x.nodes) > 0 {
			notes = append(notes, some(x.nodes, plain)+": "+x.text)
		}
	}
	return notes
}

// readLayers reads the layers that are published for nodes or applied on them, by digest. What cannot be read is missing, and in the
// notes.
func readLayers(ctx context.Context, r objects.Reader, namespace string, nodes []windowsnode.Node) (map[bundle.Digest]bundle.Layer, []string, error) {
	found, wanted := map[bundle.Digest]bundle.Layer{}, map[string]bundle.Digest{}
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
			wants = append(wants, objects.Want{Version: "v1", Kind: "Secret", Namespace: namespace, Labels: map[string]string{published.LayerLabel: label}})
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

// some names the first nodes of a list.
func some(names []string, style func(string) string) string {
	var shown []string
	for _, name := range names {
		shown = append(shown, style(name))
	}
	return bundle.JoinFirst(shown, 3, ", ", bundle.AndOthers)
}

func plain(name string) string { return name }
