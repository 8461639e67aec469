package configure

import (
	"errors"
	"maps"
	"slices"
	"strings"
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
	keep(t, r, a)
	keep(t, r, KeptNode{Name: "win-b", UID: "before", Address: hostB})
	keep(t, r, KeptNode{
		Name: "win-d", UID: "before", Address: hostA, Labels: map[string]string{"team": "a", InstanceLabel: "false"},
		Annotations: map[string]string{VersionAnnotation: "1", published.DesiredAnnotation: "{}", "k8s.ovn.org/hybrid-overlay-node-subnet": "10.0.0.0/8", "note": "b"},
	})
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

// keep keeps a Node, all of it.
func keep(t *testing.T, r Rejoining, k KeptNode) {
	t.Helper()
	tooLarge, err := r.KeepNode(t.Context(), k)
	if must(t, err); len(tooLarge) > 0 {
		t.Errorf("of %s, %q are too large", k.Name, tooLarge)
	}
}

// TestOneNodeDoesNotFillWhatIsKept of all: a kubelet may write as much on its own Node as etcd takes.
func TestOneNodeDoesNotFillWhatIsKept(t *testing.T) {
	large, small := map[string]string{"large": strings.Repeat("<", maxKept)}, map[string]string{"team": "a"}
	for name, tt := range map[string]struct {
		node     KeptNode
		want     KeptNode
		tooLarge []string
	}{
		"annotations": {KeptNode{Labels: small, Annotations: large}, KeptNode{Labels: small}, []string{"annotations"}},
		"labels":      {KeptNode{Labels: large, Annotations: small, Cordoned: true}, KeptNode{Cordoned: true}, []string{"annotations", "labels"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newScene(t).joiner.RejoiningNodes()
			tt.node.Name, tt.node.UID, tt.node.Address = "win-a", "before", hostA
			tt.want.Name, tt.want.UID, tt.want.Address = "win-a", "before", hostA
			tooLarge, err := r.KeepNode(t.Context(), tt.node)
			if must(t, err); !slices.Equal(tooLarge, tt.tooLarge) {
				t.Errorf("%q are too large, want %q", tooLarge, tt.tooLarge)
			}
			got, err := r.KeptNode(t.Context(), new(newNode("win-a", "now")), hostA)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
		})
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
	keep(t, r, KeptNode{Name: "win-a"})
	if diff := cmp.Diff([]string{"win-a"}, keptNames(t, r)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func newNode(name, uid string) corev1.Node {
	n := corev1.Node{}
	n.Name, n.UID = name, types.UID(uid)
	return n
}

// TestWhatWasKeptAndIsDamagedIsNotOverwritten: the error has the fix.
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
		if _, err := r.KeepNode(t.Context(), KeptNode{Name: "win-a"}); !errors.Is(err, errAPIServer) {
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
