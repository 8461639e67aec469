package layers

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

func file(path, text string) bundle.File {
	return bundle.File{
		Path: path, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
		Content: bundle.Content{Data: []byte(text)},
	}
}

func pack(t testing.TB, kind bundle.LayerKind, text string) published.Packed {
	t.Helper()
	p, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: []bundle.File{file(`C:\k\`+string(kind), text)}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wish is the bundle of a node with these contents of its layers.
func wish(t testing.TB, node, cluster, own string) Wanted {
	t.Helper()
	c, n := pack(t, bundle.LayerCluster, cluster), pack(t, bundle.LayerNode, own)
	whole, err := bundle.DigestLayers(c.Digest, n.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return Wanted{Node: node, Bundle: whole, Cluster: &c, Own: n}
}

func text(t testing.TB, w Wanted, allowed bundle.Impact) string {
	t.Helper()
	text, err := w.DesiredAnnotation(namespace, allowed).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func report(t testing.TB, r published.Report) string {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// nodeWith is a Node with these annotations, knownNode the one of a host that the operator knows.
func nodeWith(name, desired, report string) Node {
	return nodeOf(windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{published.DesiredAnnotation: desired, published.ReportAnnotation: report}}}))
}

func knownNode(desired, report string) Node {
	n := nodeWith("win-a", desired, report)
	n.Known = true
	return n
}

// noise is text that does not get smaller.
func noise(size int) string {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out)
	return string(out)
}

func secretNames(list []Secret) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

func TestChanges(t *testing.T) {
	a := wish(t, "win-a", "shared", "a")
	old := wish(t, "win-a", "old", "a")
	secret, oldSecret := a.Cluster.Names()[0], old.Cluster.Names()[0]
	applied := func(w Wanted, state published.State) string {
		return report(t, published.Report{State: state, Desired: w.Bundle, Applied: w.Bundle, Layers: []bundle.Digest{w.Cluster.Digest, w.Own.Digest}})
	}
	users := []string{"system:node:win-a"}
	for _, tt := range []struct {
		name     string
		wanted   []Wanted
		observed Observed
		want     Changes
	}{
		{"the first bundle", []Wanted{a}, Observed{Nodes: []Node{{Known: true, Name: "win-a"}}},
			Changes{Create: a.layerSecrets(), Readable: []string{secret}, Readers: users}},
		{"nothing changed", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode(text(t, a, bundle.ImpactRestart), "")},
			Secrets: map[string]string{secret: a.Cluster.Label()}, Readable: []string{secret}, Readers: users,
		}, Changes{}},
		{"the node may still fetch the old one", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode(text(t, old, bundle.ImpactReboot), "")},
			Secrets: map[string]string{oldSecret: old.Cluster.Label()}, Readable: []string{oldSecret}, Readers: users,
		}, Changes{Create: a.layerSecrets(), Replaced: []string{oldSecret}, Readable: sorted(secret, oldSecret)}},
		{"a layer that a node has stays", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode(text(t, a, bundle.ImpactRestart), applied(old, published.StateApplied))},
			Secrets: map[string]string{secret: a.Cluster.Label(), oldSecret: old.Cluster.Label()}, Readable: sorted(secret, oldSecret), Readers: users,
		}, Changes{Replaced: []string{oldSecret}}},
		{"a layer that no node wants or has is removed", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode(text(t, a, bundle.ImpactRestart), applied(a, published.StateApplied))},
			Secrets: map[string]string{secret: a.Cluster.Label(), oldSecret: old.Cluster.Label()}, Readable: sorted(secret, oldSecret), Readers: users,
		}, Changes{Readable: []string{secret}, Delete: []string{oldSecret}}},
		{"what a node cannot use is checked", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode(text(t, a, bundle.ImpactRestart), applied(a, published.StateFailed))},
			Secrets: map[string]string{secret: a.Cluster.Label()}, Readable: []string{secret}, Readers: users,
		}, Changes{Check: a.layerSecrets()}},
		{"a node without a bundle keeps what it has", nil, Observed{
			Nodes:   []Node{knownNode(text(t, a, bundle.ImpactRestart), "")},
			Secrets: map[string]string{secret: a.Cluster.Label()}, Readable: []string{secret}, Readers: users,
		}, Changes{}},
		{"a node that is gone loses its access and its layer", nil, Observed{
			Secrets: map[string]string{secret: a.Cluster.Label()}, Readable: []string{secret}, Readers: users,
		}, Changes{Readable: []string{}, Readers: []string{}, Delete: []string{secret}}},
		{"a bundle for a node that does not exist", []Wanted{a}, Observed{Readable: []string{}, Readers: []string{}}, Changes{}},
		{"annotations that a node has damaged", []Wanted{a}, Observed{
			Nodes:   []Node{knownNode("{", "}")},
			Secrets: map[string]string{secret: a.Cluster.Label()}, Readable: []string{secret}, Readers: users,
		}, Changes{}},
	} {
		if diff := cmp.Diff(tt.want, PlanChanges(tt.wanted, tt.observed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func sorted(list ...string) []string { slices.Sort(list); return list }

// TestLayersAreSharedAndCollected publishes many bundles, of which nodes are told in any order: a layer is there once, as long as a node
// wants or has it.
func TestLayersAreSharedAndCollected(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	o := Observed{Secrets: map[string]string{}}
	for _, name := range []string{"win-a", "win-b", "win-c", "win-d"} {
		o.Nodes = append(o.Nodes, Node{Known: true, Name: name})
	}
	texts := []string{"one", "two", "three"}
	for range 300 {
		var wanted []Wanted
		shared := texts[r.IntN(len(texts))]
		for i, n := range o.Nodes {
			w := wish(t, n.Name, shared, n.Name)
			if r.IntN(4) > 0 {
				wanted = append(wanted, w)
			}
			if d := n.Desired; d.Bundle != "" && r.IntN(2) == 0 {
				o.Nodes[i].Report = published.Report{State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle, Layers: []bundle.Digest{d.Cluster.Digest, d.Node.Digest}}
			}
		}
		applyTo(&o, PlanChanges(wanted, o))
		for i, n := range o.Nodes {
			k := slices.IndexFunc(wanted, func(w Wanted) bool { return w.Node == n.Name })
			if k >= 0 && r.IntN(2) == 0 { // its turn
				o.Nodes[i].Desired = wanted[k].DesiredAnnotation(namespace, bundle.ImpactNone)
			}
		}
		checkReadable(t, o)
		if again := PlanChanges(wanted, o); len(again.Create) > 0 || again.Readers != nil {
			t.Fatalf("a second call changes %+v", again)
		}
	}
	if len(o.Secrets) > len(texts) {
		t.Errorf("%d Secrets for %d layers", len(o.Secrets), len(texts))
	}
}

func applyTo(o *Observed, c Changes) {
	for _, s := range c.Create {
		o.Secrets[s.Name] = s.Label
	}
	if c.Readable != nil {
		o.Readable = c.Readable
	}
	if c.Readers != nil {
		o.Readers = c.Readers
	}
	for _, name := range c.Delete {
		delete(o.Secrets, name)
	}
}

// checkReadable: every part that a node may fetch exists and is readable.
func checkReadable(t *testing.T, o Observed) {
	t.Helper()
	for _, n := range o.Nodes {
		for _, name := range slices.Concat(n.Desired.Cluster.Names(), n.Desired.Node.Names()) {
			if _, ok := o.Secrets[name]; !ok || !slices.Contains(o.Readable, name) || !slices.Contains(o.Readers, NodeUser(n.Name)) {
				t.Fatalf("%s cannot read %s", n.Name, name)
			}
		}
	}
}

func TestNamesOfSecretsSayNothing(t *testing.T) {
	w := wish(t, "win-a", noise(2*published.PartSize), "a")
	if got := len(w.layerSecrets()); got != 3 {
		t.Errorf("%d Secrets", got)
	}
	for _, name := range secretNames(w.layerSecrets()) {
		if strings.Contains(name, "win-a") {
			t.Errorf("%s depends on the node", name)
		}
	}
}

// TestWhatNodesSayHasAnEnd: a layer that is wanted no longer stays for a node that reports it, or that is told to have it, for as
// long as the operator remembers.
func TestWhatNodesSayHasAnEnd(t *testing.T) {
	a, old := wish(t, "win-a", "shared", "a"), wish(t, "win-a", "old", "a")
	secret, oldSecret := a.Cluster.Names()[0], old.Cluster.Names()[0]
	both, users := sorted(secret, oldSecret), []string{"system:node:win-a"}
	claiming := map[string]Node{
		"reports it":                 nodeWith("win-a", text(t, a, bundle.ImpactNone), report(t, published.Report{State: published.StateApplied, Applied: old.Bundle, Layers: []bundle.Digest{old.Cluster.Digest, old.Own.Digest}})),
		"restored an old annotation": nodeWith("win-a", text(t, old, bundle.ImpactNone), ""),
	}
	for _, tt := range []struct {
		name     string
		age      *Age
		readable []string
		want     Changes
	}{
		{"it has just been replaced", nil, both, Changes{Replaced: []string{oldSecret}}},
		{"a moment ago", &Age{For: time.Minute}, both, Changes{}},
		{"an hour ago", &Age{For: time.Hour}, both, Changes{Aged: []string{oldSecret}}},
		{"an hour ago, which is noted", &Age{For: time.Hour, Noted: time.Hour}, both, Changes{}},
		{"the last moment", &Age{For: ReadableFor - time.Second, Noted: ReadableFor - time.Minute}, both, Changes{}},
		{"a day ago, which is noted before nodes lose it", &Age{For: ReadableFor, Noted: ReadableFor - time.Second}, both, Changes{Aged: []string{oldSecret}, Readable: []string{secret}}},
		{"more than a day ago", &Age{For: ReadableFor + 23*time.Hour, Noted: ReadableFor}, []string{secret}, Changes{}},
		{"two days ago", &Age{For: 2 * ReadableFor, Noted: ReadableFor}, []string{secret}, Changes{Aged: []string{oldSecret}}},
		{"a month ago", &Age{For: 30 * 24 * time.Hour, Noted: 30 * 24 * time.Hour}, []string{secret}, Changes{}},
		{"the operator needs it no longer", &Age{For: KeptFor}, []string{secret}, Changes{Delete: []string{oldSecret}}},
	} {
		for how, node := range claiming {
			node.Known = true
			o := Observed{
				Nodes: []Node{node}, Readable: tt.readable, Readers: users, Replaced: map[string]Age{},
				Secrets: map[string]string{secret: a.Cluster.Label(), oldSecret: old.Cluster.Label()},
			}
			if tt.age != nil {
				o.Replaced[oldSecret] = *tt.age
			}
			if diff := cmp.Diff(tt.want, PlanChanges([]Wanted{a}, o)); diff != "" {
				t.Errorf("%s, and the node %s (-want +got):\n%s", tt.name, how, diff)
			}
		}
	}
}

// TestALayerThatIsWantedAgain is not replaced any longer; and nothing is, while all inputs are refused.
func TestALayerThatIsWantedAgain(t *testing.T) {
	a := wish(t, "win-a", "shared", "a")
	secret := a.Cluster.Names()[0]
	o := Observed{
		Nodes: []Node{knownNode(text(t, a, bundle.ImpactNone), "")}, Readers: []string{"system:node:win-a"}, Readable: []string{},
		Secrets: map[string]string{secret: a.Cluster.Label()}, Replaced: map[string]Age{secret: {For: KeptFor}},
	}
	if diff := cmp.Diff(Changes{Restored: []string{secret}, Readable: []string{secret}}, PlanChanges([]Wanted{a}, o)); diff != "" {
		t.Errorf("wanted again (-want +got):\n%s", diff)
	}
	o.Readable, o.Replaced = []string{secret}, nil
	if diff := cmp.Diff(Changes{}, PlanChanges(nil, o)); diff != "" {
		t.Errorf("all inputs are refused (-want +got):\n%s", diff)
	}
}
