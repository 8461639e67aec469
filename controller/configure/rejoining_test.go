package configure

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle/published"
)

// TestWhatIsKeptOfANode is read for its successor on the same host alone, and dropped by its name.
func TestWhatIsKeptOfANode(t *testing.T) {
	s := newScene(t)
	r := s.joiner.RejoiningNodes()
	a := KeptNode{Name: "win-a", UID: "before", Address: hostA, Labels: map[string]string{"team": "a"}}
	must(t, r.KeepNode(t.Context(), a))
	must(t, r.KeepNode(t.Context(), KeptNode{Name: "win-b", UID: "before", Address: hostB}))
	must(t, r.KeepNode(t.Context(), KeptNode{
		Name: "win-d", UID: "before", Address: hostA, Labels: map[string]string{"team": "a", InstanceLabel: "false"},
		Annotations: map[string]string{VersionAnnotation: "1", published.DesiredAnnotation: "{}", "k8s.ovn.org/hybrid-overlay-node-subnet": "10.0.0.0/8", "note": "b"},
		Taints:      []corev1.Taint{{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute}, {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
	}))
	for name, tt := range map[string]struct {
		node    corev1.Node
		address string
		want    KeptNode
	}{
		"its successor":          {newNode("win-a", "now"), hostA, a},
		"the Node itself":        {newNode("win-a", "before"), hostA, KeptNode{}},
		"another host's":         {newNode("win-a", "now"), hostB, KeptNode{}},
		"a Node of another name": {newNode("win-c", "now"), hostA, KeptNode{}},
		"only what users wrote": {newNode("win-d", "now"), hostA, KeptNode{
			Name: "win-d", UID: "before", Address: hostA, Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"},
			Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
		}},
	} {
		got, err := r.KeptNode(t.Context(), &tt.node, tt.address)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
	must(t, r.ForgetNode(t.Context(), "win-a"))
	must(t, r.ForgetNode(t.Context(), "win-c"))
	if diff := cmp.Diff([]string{"win-b", "win-d"}, keptNames(t, r)); diff != "" {
		t.Errorf("what is left, -want +got\n%s", diff)
	}
}

// keptNames are the Nodes of which something is kept.
func keptNames(t *testing.T, r Rejoining) []string {
	t.Helper()
	cm, err := r.ReadEntries(t.Context())
	must(t, err)
	return slices.Sorted(maps.Keys(cm.Data))
}

// TestTheFirstNodeThatIsKeptMakesTheConfigMap.
func TestTheFirstNodeThatIsKeptMakesTheConfigMap(t *testing.T) {
	s := newScene(t)
	r := s.joiner.RejoiningNodes()
	must(t, s.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rejoiningName}}))
	must(t, r.ForgetNode(t.Context(), "win-a"))
	must(t, r.KeepNode(t.Context(), KeptNode{Name: "win-a"}))
	if diff := cmp.Diff([]string{"win-a"}, keptNames(t, r)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func newNode(name, uid string) corev1.Node {
	n := corev1.Node{}
	n.Name, n.UID = name, types.UID(uid)
	return n
}

// TestWhatWasKeptAndIsDamagedIsNotOverwritten: the error says what to do.
func TestWhatWasKeptAndIsDamagedIsNotOverwritten(t *testing.T) {
	s := newScene(t)
	r := s.joiner.RejoiningNodes()
	must(t, r.ChangeEntry(t.Context(), "win-a", "{"))
	n := newNode("win-a", "now")
	const want = "reading the key win-a of ConfigMap windows-rejoining-nodes: unexpected end of JSON input; fix: remove the key"
	if _, err := r.KeptNode(t.Context(), &n, hostA); err == nil || err.Error() != want {
		t.Error(err)
	}
	for _, fails := range []string{"get " + rejoiningName, "patch " + rejoiningName} {
		s.fails[fails] = errAPIServer
		if err := r.ForgetNode(t.Context(), "win-a"); !errors.Is(err, errAPIServer) {
			t.Errorf("%s: %v", fails, err)
		}
		if err := r.KeepNode(t.Context(), KeptNode{Name: "win-a"}); !errors.Is(err, errAPIServer) {
			t.Errorf("%s: %v", fails, err)
		}
		clear(s.fails)
	}
}

func TestALostNodeIsNoMachine(t *testing.T) {
	if key := LostNodeKey("win-a"); !isLostName(key) || isLostName("win-a") || isLostName("node") {
		t.Errorf("%q", key)
	}
}
