package deletions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/render"
	"wmco/render/mirrors"
)

// madeOf returns a Node with a bundle that was made from the inputs.
func madeOf(t *testing.T, name string, inputs ...published.Input) *corev1.Node {
	t.Helper()
	var layers []published.Packed
	for _, kind := range []bundle.LayerKind{bundle.LayerCluster, bundle.LayerNode} {
		l, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined})
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	digest, err := bundle.DigestLayers(layers[0].Digest, layers[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	text, err := published.Desired{Bundle: digest, MaxImpact: bundle.ImpactNone, Namespace: "n", Cluster: layers[0].Layer, Node: layers[1].Layer, Inputs: inputs}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{published.DesiredAnnotation: text}}}
}

func with(n *corev1.Node, key, value string) *corev1.Node {
	n.Annotations[key] = value
	return n
}

func TestDeletions(t *testing.T) {
	const both = string(published.InputMirrors) + "," + string(published.InputSettings)
	sets := []mirrors.Set{{Source: "a.example.com", Mirrors: []string{"b.example.com"}}}
	settings := render.Origins{render.FromSettings: bundle.Ref{Kind: "ConfigMap"}}
	all := func(t *testing.T) *corev1.Node {
		return madeOf(t, "win-a", published.InputMirrors, published.InputSettings)
	}
	type waiting = map[published.Input][]string
	for name, tt := range map[string]struct {
		mirrors   []mirrors.Set
		origins   render.Origins
		instances []gather.Instance
		// removed is the entry by which the node joined, where it is gone.
		removed string
		node    func(*testing.T) *corev1.Node
		waiting waiting
		keeps   bool
		used    int
	}{
		"everything is there":                   {mirrors: sets, origins: settings, node: all},
		"the mirror sets are gone":              {origins: settings, node: all, waiting: waiting{published.InputMirrors: {"win-a"}}, keeps: true},
		"the settings are gone":                 {mirrors: sets, node: all, waiting: waiting{published.InputSettings: {"win-a"}}, keeps: true},
		"both are gone":                         {node: all, waiting: waiting{published.InputMirrors: {"win-a"}, published.InputSettings: {"win-a"}}, keeps: true},
		"a node that never had them":            {node: func(t *testing.T) *corev1.Node { return madeOf(t, "win-a") }},
		"a node for which nothing is published": {node: func(*testing.T) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}} }},
		"an annotation that cannot be read":     {node: func(t *testing.T) *corev1.Node { return with(all(t), published.DesiredAnnotation, "{") }},
		"one of both is confirmed":              {node: func(t *testing.T) *corev1.Node { return with(all(t), published.ConfirmAnnotation, "settings") }, waiting: waiting{published.InputMirrors: {"win-a"}}, keeps: true},
		"both are confirmed":                    {node: func(t *testing.T) *corev1.Node { return with(all(t), published.ConfirmAnnotation, both) }},
		"a confirmation of what is back":        {mirrors: sets, origins: settings, node: func(t *testing.T) *corev1.Node { return with(all(t), published.ConfirmAnnotation, both) }, used: 1},
		"a confirmation that is carried out": {node: func(t *testing.T) *corev1.Node {
			return with(madeOf(t, "win-a"), published.ConfirmAnnotation, "mirrors")
		}, used: 1},
		"a confirmation of another input": {node: func(t *testing.T) *corev1.Node {
			return with(madeOf(t, "win-a", published.InputMirrors), published.ConfirmAnnotation, "settings")
		}, waiting: waiting{published.InputMirrors: {"win-a"}}, keeps: true, used: 1},
		"the instances are gone":      {node: func(t *testing.T) *corev1.Node { return madeOf(t, "win-a") }, removed: "10.0.0.1", waiting: waiting{published.InputInstances: {"win-a"}}},
		"one instance of two is gone": {instances: []gather.Instance{{Address: "10.0.0.2"}}, removed: "10.0.0.1", node: func(t *testing.T) *corev1.Node { return madeOf(t, "win-a") }},
		"the removal of the instance is confirmed": {removed: "10.0.0.1", node: func(t *testing.T) *corev1.Node {
			return with(madeOf(t, "win-a"), published.RemoveAnnotation, "true")
		}},
		"a Node that claims to be an instance": {node: func(t *testing.T) *corev1.Node {
			n := with(madeOf(t, "win-a"), published.InstanceAnnotation, "10.0.0.1")
			n.Labels[published.InstanceLabel] = "true"
			return n
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := &desired.Hosts{All: []render.Node{{Name: "win-a", Backing: render.BackingNode, RemovedEntry: tt.removed}}, Instances: tt.instances, Cluster: render.Cluster{Mirrors: mirrors.Inputs{Sets: tt.mirrors}, Origins: tt.origins}}
			got := CompareInputs(hosts, []windowsnode.Node{windowsnode.Decode(*tt.node(t))}, madeFrom)
			if tt.waiting == nil {
				tt.waiting = waiting{}
			}
			if diff := cmp.Diff(tt.waiting, got.Waiting); diff != "" || got.KeepsPublished("win-a") != tt.keeps || len(got.Used) != tt.used {
				t.Errorf("keeps %t, %d confirmations used (-want +got):\n%s", got.KeepsPublished("win-a"), len(got.Used), diff)
			}
			for _, input := range got.WaitingInputs() {
				if text := got.ExplainDeletion(input); !strings.Contains(text, "1 node ") || !strings.Contains(text, "fix: ") || !strings.Contains(text, "wmco confirm --all") && !strings.Contains(text, "oc annotate nodes") {
					t.Errorf("%s: %q", input, text)
				}
			}
		})
	}
}

// TestAChangeThatWouldStopAllPods is held for nodes that have something else, and for new ones beside them.
func TestAChangeThatWouldStopAllPods(t *testing.T) {
	const input = published.InputUnreachableImages
	if string(input) != reason.NodeImageUnreachable {
		t.Fatalf("%s is not the reason of the finding", input)
	}
	unreachable := bundle.Findings{{Severity: bundle.SeverityWarning, Reason: reason.NodeImageUnreachable, Message: "no pod can start", Fix: "allow its registry"}}
	confirmed := func(n *corev1.Node, value string) *corev1.Node {
		return with(n, published.ConfirmFindingAnnotation, value)
	}
	none := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	}
	for name, tt := range map[string]struct {
		findings bundle.Findings
		nodes    []*corev1.Node
		held     []string
		used     int
	}{
		"nothing was found":                     {nodes: []*corev1.Node{madeOf(t, "win-a")}},
		"nodes that have another bundle":        {findings: unreachable, nodes: []*corev1.Node{madeOf(t, "win-b", published.InputMirrors), madeOf(t, "win-a")}, held: []string{"win-a", "win-b"}},
		"a node that has it already":            {findings: unreachable, nodes: []*corev1.Node{madeOf(t, "win-a", input)}},
		"a node that has confirmed":             {findings: unreachable, nodes: []*corev1.Node{confirmed(madeOf(t, "win-a"), "NodeImageUnreachable")}},
		"one of two has confirmed":              {findings: unreachable, nodes: []*corev1.Node{confirmed(madeOf(t, "win-a"), "Other,NodeImageUnreachable"), madeOf(t, "win-b")}, held: []string{"win-b"}},
		"a confirmation that is carried out":    {findings: unreachable, nodes: []*corev1.Node{confirmed(madeOf(t, "win-a", input), "NodeImageUnreachable")}, used: 1},
		"a confirmation of what is gone":        {nodes: []*corev1.Node{confirmed(madeOf(t, "win-a"), "NodeImageUnreachable")}, used: 1},
		"a confirmation of a deletion":          {findings: unreachable, nodes: []*corev1.Node{with(madeOf(t, "win-a"), published.ConfirmAnnotation, "NodeImageUnreachable")}, held: []string{"win-a"}, used: 1},
		"a new node beside others":              {findings: unreachable, nodes: []*corev1.Node{madeOf(t, "win-b"), none("win-a")}, held: []string{"win-a", "win-b"}},
		"a new node beside one that has it":     {findings: unreachable, nodes: []*corev1.Node{madeOf(t, "win-b", input), none("win-a")}},
		"the first node of a cluster":           {findings: unreachable, nodes: []*corev1.Node{none("win-a")}},
		"it is over: the mark is no lost input": {nodes: []*corev1.Node{madeOf(t, "win-a", input)}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []windowsnode.Node
			for _, n := range tt.nodes {
				nodes = append(nodes, windowsnode.Decode(*n))
			}
			hosts := &desired.Hosts{Findings: tt.findings, Cluster: render.Cluster{Mirrors: mirrors.Inputs{Sets: []mirrors.Set{{Source: "a"}}}}}
			got := CompareInputs(hosts, nodes, madeFrom)
			if diff := cmp.Diff(tt.held, got.Held[input]); diff != "" || len(got.Used) != tt.used || len(got.Waiting) > 0 {
				t.Errorf("%d confirmations used, %v waiting (-want +got):\n%s", len(got.Used), got.Waiting, diff)
			}
			for _, name := range tt.held {
				if !got.KeepsPublished(name) {
					t.Errorf("%s does not keep what it has", name)
				}
			}
			text := got.ExplainHeld()
			if (text != "") != (len(tt.held) > 0) || text != "" && (!strings.Contains(text, "no pod can start (fix: allow its registry, or ") || !strings.Contains(text, "wmco confirm --all --input NodeImageUnreachable)")) {
				t.Errorf("%q", text)
			}
		})
	}
}

// TestTheNodeOfAnInstanceStaysOne: the bundle of a node does not change because its entry is gone.
func TestTheNodeOfAnInstanceStaysOne(t *testing.T) {
	var f Found
	for _, tt := range []struct{ entry, backing, address string }{{"10.0.0.1", "Instance", "10.0.0.1"}, {"", "Node", "10.0.0.9"}} {
		got := f.AsJoinedHost(render.Node{Name: "win-a", Backing: render.BackingNode, Address: "10.0.0.9", RemovedEntry: tt.entry})
		if string(got.Backing) != tt.backing || got.Address != tt.address {
			t.Errorf("%q: %s at %s", tt.entry, got.Backing, got.Address)
		}
	}
	machine := render.Node{Name: "win-a", Backing: render.BackingMachine, Address: "10.0.0.9"}
	if got := f.AsJoinedHost(machine); got.Backing != render.BackingMachine || got.Address != machine.Address {
		t.Errorf("a Machine: %+v", got)
	}
}

// madeFrom reads the published bundle of a Node, whoever has written it.
func madeFrom(n windowsnode.Node) []published.Input {
	if n.DesiredError != nil {
		return nil
	}
	return n.Desired.Inputs
}
