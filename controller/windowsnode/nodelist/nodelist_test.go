package nodelist

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// informer is an informer cache of Nodes.
type informer struct {
	client.Reader
	nodes []*corev1.Node
	err   error
}

func (i *informer) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list := into.(*corev1.NodeList)
	for _, n := range i.nodes {
		list.Items = append(list.Items, *n)
	}
	return i.err
}

func node(name, uid, version, state string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(uid), ResourceVersion: version, Labels: map[string]string{corev1.LabelOSStable: windowsnode.Windows},
		Annotations: map[string]string{published.RolloutAnnotation: `{"schema":1,"failed":"` + state + `"}`},
	}}
}

// TestAVersionIsDecodedOnce: the kept value is used for the same version of the same Node, and for no other one.
func TestAVersionIsDecodedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		now  *corev1.Node
		want string
	}{
		"the same version":            {node("win-a", "1", "5", "other"), "first"}, // as an API server never gives it: it shows which one is used
		"another version":             {node("win-a", "1", "6", "other"), "other"},
		"another Node of that name":   {node("win-a", "2", "5", "other"), "other"},
		"a Node without a version":    {node("win-a", "1", "", "other"), "other"},
		"another Node of its version": {node("win-b", "3", "5", "other"), "other"},
	} {
		var c Cache
		i := &informer{nodes: []*corev1.Node{node("win-a", "1", "5", "first")}}
		if _, err := c.ListCached(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		i.nodes[0] = tt.now
		got, err := c.ListCached(t.Context(), i)
		if err != nil || len(got) != 1 || string(got[0].Rollout.Failed) != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if len(c.decoded) != 1 {
			t.Errorf("%s: %d Nodes are kept", name, len(c.decoded))
		}
	}
}

// TestANilCacheKeepsNothing: it decodes each time.
func TestANilCacheKeepsNothing(t *testing.T) {
	var c *Cache
	for _, state := range []string{"first", "other"} {
		got, err := c.ListCached(t.Context(), &informer{nodes: []*corev1.Node{node("win-a", "1", "5", state)}})
		if err != nil || len(got) != 1 || string(got[0].Rollout.Failed) != state {
			t.Errorf("%s: %+v, %v", state, got, err)
		}
	}
}

func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	var c Cache
	i := &informer{nodes: []*corev1.Node{node("win-a", "1", "5", ""), node("win-b", "2", "5", "")}}
	for _, want := range []int{2, 1, 0} {
		i.nodes = i.nodes[:want]
		if _, err := c.ListCached(t.Context(), i); err != nil || len(c.decoded) != want {
			t.Errorf("%d Nodes are kept of %d: %v", len(c.decoded), want, err)
		}
	}
	i.err = errors.New("not synced")
	if _, err := c.ListCached(t.Context(), i); err == nil || !strings.Contains(err.Error(), "listing Windows nodes: not synced") {
		t.Errorf("%v", err)
	}
}

// TestLinuxNodesAreNotListed: the API server and a cache of all Nodes have them.
func TestLinuxNodesAreNotListed(t *testing.T) {
	linux := node("linux-a", "2", "", "")
	linux.Labels[corev1.LabelOSStable] = "linux"
	windows := node("win-a", "1", "", "first")
	windows.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	all := fake.NewClientBuilder().WithObjects(windows, linux).Build()
	for name, tt := range map[string]struct {
		list  func(context.Context, client.Reader) ([]windowsnode.Node, error)
		ready bool
	}{
		"cached": {new(Cache).ListCached, true}, "live": {ListLive, true}, "metadata": {ListLiveMetadata, false},
	} {
		nodes, err := tt.list(t.Context(), all)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if !slices.Equal(names, []string{"win-a"}) || nodes[0].Rollout.Failed != "first" || nodes[0].IsReady() != tt.ready {
			t.Errorf("%s: %v, %+v", name, names, nodes)
		}
	}
}

// Get implements client.Reader.
func (i *informer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, n := range i.nodes {
		if n.Name == key.Name {
			*into.(*corev1.Node) = *n
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
}

// TestANodeThatWasReadIsNotDecodedAgain: who lists the Nodes gets what was decoded for one event, and the other way round.
func TestANodeThatWasReadIsNotDecodedAgain(t *testing.T) {
	var c Cache
	cached := &informer{nodes: []*corev1.Node{node("win-a", "1", "5", "first"), node("win-b", "2", "5", "first")}}
	if n, err := c.ReadCached(t.Context(), cached, "win-a"); err != nil || n.Rollout.Failed != "first" {
		t.Fatalf("%+v, %v", n.Rollout, err)
	}
	cached.nodes = []*corev1.Node{node("win-a", "1", "5", "other"), node("win-b", "2", "5", "other")} // the same versions: it shows which ones are used
	list, err := c.ListCached(t.Context(), cached)
	if err != nil || len(list) != 2 || list[0].Rollout.Failed != "first" || list[1].Rollout.Failed != "other" {
		t.Errorf("%+v, %v", list, err)
	}
	cached.nodes[1] = node("win-b", "2", "5", "third")
	if n, err := c.ReadCached(t.Context(), cached, "win-b"); err != nil || n.Rollout.Failed != "other" {
		t.Errorf("%+v, %v", n.Rollout, err)
	}
	cached.nodes[1] = node("win-b", "2", "6", "third")
	if n, err := c.ReadCached(t.Context(), cached, "win-b"); err != nil || n.Rollout.Failed != "third" {
		t.Errorf("another version: %+v, %v", n.Rollout, err)
	}
	if _, err := c.ReadCached(t.Context(), cached, "win-c"); !apierrors.IsNotFound(err) {
		t.Errorf("a Node that is gone: %v", err)
	}
	if n, err := (*Cache)(nil).ReadCached(t.Context(), cached, "win-b"); err != nil || n.Rollout.Failed != "third" {
		t.Errorf("without a cache: %+v, %v", n.Rollout, err)
	}
}
