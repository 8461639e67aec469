package layers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/testenv"
)

// TestACompromisedNodeKeepsNoRotatedSecretReadable: it reports layers of the past, restores an old annotation, and tries to change what the
// operator remembers. The secret that was rotated stays readable for the age, and not longer; the node that is honest is served.
func TestACompromisedNodeKeepsNoRotatedSecretReadable(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	before := []Wanted{wish(t, "win-a", "rotated", "a"), wish(t, "win-b", "rotated", "b")}
	after := []Wanted{wish(t, "win-a", "new", "a"), wish(t, "win-b", "new", "b")}
	c.publish(t, before...)
	c.publish(t, after...)
	bad, good := testenv.NewClient(t, server.Node(t, "win-a")), testenv.NewClient(t, server.Node(t, "win-b"))
	rotated := client.ObjectKey{Namespace: namespace, Name: before[0].Cluster.Names()[0]}
	current := client.ObjectKey{Namespace: namespace, Name: after[0].Cluster.Names()[0]}
	reads := func(node client.Client, key client.ObjectKey) bool {
		return node.Get(t.Context(), key, &corev1.Secret{}) == nil
	}
	attack := func() {
		t.Helper()
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}
		from := o.DeepCopy()
		o.Annotations = map[string]string{
			published.DesiredAnnotation: text(t, before[0], bundle.ImpactReboot),
			published.ReportAnnotation:  report(t, published.Report{State: published.StateApplied, Desired: before[0].Bundle, Applied: before[0].Bundle, Layers: []bundle.Digest{before[0].Cluster.Digest, before[0].Own.Digest}}),
		}
		if err := bad.Patch(t.Context(), o, client.MergeFrom(from)); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rotated.Namespace, Name: rotated.Name}}
		if err := bad.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))); !apierrors.IsForbidden(err) {
			t.Errorf("the node changes what the operator remembers: %v", err)
		}
	}
	attack()
	if _, err := c.publisher.Publish(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Eventually(t.Context(), "access", func() bool { return reads(bad, rotated) && reads(good, current) }); err != nil {
		t.Errorf("within the age: %v", err)
	}
	c.now = c.now.Add(ReadableFor)
	for range 2 {
		attack()
		c.writes = 0
		if _, err := c.publisher.Publish(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		if err := testenv.Eventually(t.Context(), "the end of the access", func() bool { return !reads(bad, rotated) && !reads(good, rotated) && reads(good, current) }); err != nil {
			t.Error(err)
		}
	}
	if c.writes != 0 {
		t.Errorf("%d writes although nothing changed", c.writes)
	}
	// The operator has it, to know what the change costs; at the end nothing has.
	if err := c.Get(t.Context(), rotated, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
	c.now = c.now.Add(KeptFor)
	attack()
	if _, err := c.publisher.Publish(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), rotated, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is kept: %v", err)
	}
}

// TestTheMemoryIsWrittenOnce: one write when a layer is replaced, one when it is wanted again, however many nodes there are.
func TestTheMemoryIsWrittenOnce(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	first := []Wanted{wish(t, "win-a", "first", "a"), wish(t, "win-b", "first", "b")}
	second := []Wanted{wish(t, "win-a", "second", "a"), wish(t, "win-b", "second", "b")}
	c.publish(t, first...)
	name := client.ObjectKey{Namespace: namespace, Name: first[0].Cluster.Names()[0]}
	noted := func() string {
		t.Helper()
		var s corev1.Secret
		if err := c.Get(t.Context(), name, &s); err != nil {
			t.Fatal(err)
		}
		return s.Annotations[ReplacedAnnotation]
	}
	began := c.now.UTC().Format(time.RFC3339)
	for i, want := range []int{3, 0, 0} { // the Secret, the note and the Role
		c.writes = 0
		if _, err := c.publisher.Publish(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if c.writes != want || noted() != began {
			t.Errorf("call %d: %d writes, noted %q", i, c.writes, noted())
		}
		c.now = c.now.Add(time.Minute)
	}
	c.writes = 0
	if _, err := c.publisher.Publish(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if noted() != "" || c.writes != 3 { // the note, the Role and the Secret of the other layer, which no node has been told of
		t.Errorf("%d writes, noted %q", c.writes, noted())
	}
}
