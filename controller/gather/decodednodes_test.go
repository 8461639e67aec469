package gather

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestDecodedNodesAreReadAsObjectsAre: Nodes that are decoded already give what the same Nodes give as objects, in any order, and those of
// the objects are not read beside them.
func TestDecodedNodesAreReadAsObjectsAre(t *testing.T) {
	unreadable := object("", "Node", "", "win-d", `{"metadata":{"name":"win-d","annotations":{"windowsmachineconfig.openshift.io/report":"{"}},"status":{"addresses":[]}}`)
	nodes := []objects.Object{nodeSaying(t, "win-a", "uid-1", "192.0.2.1"), nodeSaying(t, "win-b", "uid-2", "192.0.2.2"), nodeSaying(t, "win-c", "uid-3", "192.0.2.7"), unreadable, object("", "Node", "", "a_b", `{"metadata":{"name":"a_b"}}`)}
	others := []objects.Object{machineAt("m-a", "m1", "192.0.2.1"), object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"192.0.2.2":"username=u"}}`)}
	recorded := record.New("machine_m1")
	recorded.Node, recorded.NodeUID, recorded.Address = "win-a", "uid-1", "192.0.2.1"
	set := record.NewSet(recorded)
	for name, records := range map[string]*record.Set{"with records": &set, "without records": nil} {
		t.Run(name, func(t *testing.T) {
			want := gatherFrom(t, Options{Records: records}, slices.Concat(others, nodes)...)
			if len(want.Nodes) < 4 {
				t.Fatalf("the Nodes give %d nodes", len(want.Nodes))
			}
			o := Options{Records: records}
			for _, n := range slices.Backward(nodes) {
				o.Nodes = append(o.Nodes, decoded(t, n))
			}
			got := gatherFrom(t, o, append(others, nodeSaying(t, "not-decoded", "uid-9", "192.0.2.9"))...)
			without := cmpopts.IgnoreFields(bundle.Ref{}, "Digest")
			if diff := cmp.Diff(want.Nodes, got.Nodes, without, cmp.AllowUnexported(bundle.Secret{})); diff != "" {
				t.Errorf("nodes (-objects +decoded):\n%s", diff)
			}
			if diff := cmp.Diff(want.Findings, got.Findings, without); diff != "" || len(want.Findings) == 0 {
				t.Errorf("findings (-objects +decoded):\n%s", diff)
			}
			o.Nodes = []windowsnode.Node{}
			if none := gatherFrom(t, o, slices.Concat(others, nodes)...); len(none.Nodes) != 2 {
				t.Errorf("no Nodes are decoded, and there are %d nodes", len(none.Nodes))
			}
		})
	}
}

func decoded(t *testing.T, o objects.Object) windowsnode.Node {
	t.Helper()
	var n corev1.Node
	if err := json.Unmarshal(o.JSON, &n); err != nil {
		t.Fatal(err)
	}
	return windowsnode.Decode(n)
}
