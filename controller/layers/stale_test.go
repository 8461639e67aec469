package layers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
)

// behind returns another publisher, whose caches have the present state of the cluster and learn of nothing that happens later.
func (c *testCluster) behind(t *testing.T) *Publisher {
	t.Helper()
	var nodes corev1.NodeList
	var secrets corev1.SecretList
	var roles rbacv1.RoleList
	var bindings rbacv1.RoleBindingList
	for list, o := range map[client.ObjectList][]client.ListOption{&nodes: nil, &secrets: inNamespace(), &roles: inNamespace(), &bindings: inNamespace()} {
		if err := c.List(t.Context(), list, o...); err != nil {
			t.Fatal(err)
		}
	}
	p := *c.publisher
	p.Nodes = fake.NewClientBuilder().WithLists(&nodes).Build()
	p.Layers = fake.NewClientBuilder().WithLists(&secrets, &roles, &bindings).Build()
	return &p
}

func inNamespace() []client.ListOption { return []client.ListOption{client.InNamespace(namespace)} }

// TestACacheThatIsBehindIsNotTrusted: the layers of a bundle that another one published look unused, so Nodes are read again.
func TestACacheThatIsBehindIsNotTrusted(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	c.publish(t, wish(t, "win-a", "first", "a"))
	stale := c.behind(t)
	c.publish(t, wish(t, "win-a", "second", "a"), wish(t, "win-b", "second", "b"))
	third := wish(t, "win-a", "third", "a")
	if _, err := stale.PublishLayers(t.Context(), []Wanted{third}); err != nil {
		t.Fatal(err)
	}
	checkReadable(t, c.observe(t))
}

// TestACacheThatIsBehindTakesNothingAway: a layer that it thinks unused, and a node that it does not know.
func TestACacheThatIsBehindTakesNothingAway(t *testing.T) {
	c := newTestCluster(t, "win-a")
	first, second := wish(t, "win-a", "first", "a"), wish(t, "win-a", "second", "a")
	c.publish(t, first)
	c.report(t, "win-a", published.Report{State: published.StateApplied, Desired: first.Bundle, Applied: first.Bundle, Layers: []bundle.Digest{first.Cluster.Digest, first.Own.Digest}})
	stale := c.behind(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-b", Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(t.Context(), node) })
	c.publish(t, second, wish(t, "win-b", "second", "b"))
	if _, err := stale.PublishLayers(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	checkReadable(t, c.observe(t))
	for _, w := range []Wanted{first, second} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: w.Cluster.Names()[0]}, &corev1.Secret{}); err != nil {
			t.Error(err)
		}
	}
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// TestALayerThatOnlyTheCacheHasIsPublished: a bundle is published again whose layers were collected a moment ago.
func TestALayerThatOnlyTheCacheHasIsPublished(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	w := wish(t, "win-a", "first", "a")
	c.publish(t, w)
	stale := c.behind(t)
	if err := c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}); err != nil {
		t.Fatal(err)
	}
	c.publish(t)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: w.Cluster.Names()[0]}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the layer is not collected: %v", err)
	}
	other := wish(t, "win-b", "first", "b")
	if _, err := stale.PublishLayers(t.Context(), []Wanted{w, other}); err != nil {
		t.Fatal(err)
	}
	c.tell(t, other)
	checkReadable(t, c.observe(t))
}

// TestNothingToDoMakesNoRequest: what the caches have is enough.
func TestNothingToDoMakesNoRequest(t *testing.T) {
	c := newTestCluster(t, "win-a")
	w := wish(t, "win-a", "first", "a")
	c.publish(t, w)
	cached := c.behind(t)
	cached.Live, cached.Client = nil, nil
	if changes, err := cached.PublishLayers(t.Context(), []Wanted{w}); err != nil || !changes.IsZero() {
		t.Errorf("%+v, %v", changes, err)
	}
}
