package layers

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	if _, err := c.publisher.PublishLayers(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Eventually(t.Context(), "access", func() bool { return reads(bad, rotated) && reads(good, current) }); err != nil {
		t.Errorf("within the age: %v", err)
	}
	c.elapsed += ReadableFor
	for range 2 {
		attack()
		c.writes = 0
		if _, err := c.publisher.PublishLayers(t.Context(), after); err != nil {
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
	c.elapsed += KeptFor
	attack()
	if _, err := c.publisher.PublishLayers(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), rotated, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is kept: %v", err)
	}
}

// TestAgesAreThoseThatWereObserved: the wall clock is set by years, operators are started again and again, and some time none runs. A layer that a
// node may need stays, and one that was replaced is not readable for ever.
func TestAgesAreThoseThatWereObserved(t *testing.T) {
	c := newTestCluster(t, "win-a")
	before, after := wish(t, "win-a", "replaced", "a"), wish(t, "win-a", "newer", "a")
	c.publish(t, before)
	name := before.Cluster.Names()[0]
	publish := func() string {
		t.Helper()
		if _, err := c.publisher.PublishLayers(t.Context(), []Wanted{after}); err != nil {
			t.Fatal(err)
		}
		var role rbacv1.Role
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: Access}, &role); err != nil {
			t.Fatal(err)
		}
		switch err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{}); {
		case apierrors.IsNotFound(err):
			return "removed"
		case slices.Contains(resourceNames(role), name):
			return "readable"
		}
		return "kept"
	}
	restart := func() { c.publisher.ages, c.elapsed = nil, time.Minute }
	expect := func(what, want string) {
		t.Helper()
		if got := publish(); got != want {
			t.Errorf("%s: it is %s, want %s", what, got, want)
		}
	}
	expect("it is replaced", "readable")
	for _, years := range []int{10, -20} {
		c.now = c.now.AddDate(years, 0, 0)
		expect("the clock is set", "readable")
		restart()
		expect("the clock was set, and the operator was started again", "readable")
	}
	for range 23 { // each operator works for an hour, and some days pass until the next one
		c.elapsed += noteReadable
		expect("less than a day", "readable")
		c.now = c.now.AddDate(0, 0, 3)
		restart()
		expect("less than a day, and a start", "readable")
	}
	c.elapsed += noteReadable
	expect("after a day", "kept")
	restart()
	expect("after a day, and a start", "kept")
	c.elapsed += KeptFor - ReadableFor - time.Minute
	expect("the last minute", "kept")
	c.elapsed += time.Minute
	expect("after 90 days", "removed")
}

// TestANoteThatFailsKeepsNothingElse: the age of one layer cannot be written, and the others are published and readable.
func TestANoteThatFailsKeepsNothingElse(t *testing.T) {
	c := newTestCluster(t, "win-a")
	before, after := wish(t, "win-a", "not to be noted", "a"), wish(t, "win-a", "published", "a")
	c.publish(t, before)
	c.writes, c.fail = 0, 2 // the Secret, then the note
	_, err := c.publisher.PublishLayers(t.Context(), []Wanted{after})
	if !errors.Is(err, errRefused) || !IsPublished(after, err) {
		t.Errorf("the error is %v", err)
	}
	reader := testenv.NewClient(t, server.Node(t, "win-a"))
	key := client.ObjectKey{Namespace: namespace, Name: after.Cluster.Names()[0]}
	if err := testenv.Eventually(t.Context(), "access", func() bool { return reader.Get(t.Context(), key, &corev1.Secret{}) == nil }); err != nil {
		t.Error(err)
	}
}

func TestAgesOfDamagedNotes(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "x": 0, "-7": 0, "3600": time.Hour, "9223372036854775807": KeptFor, "1e9": 0} {
		if got := notedAge(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
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
		if _, err := c.publisher.PublishLayers(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if c.writes != want || noted() != began {
			t.Errorf("call %d: %d writes, noted %q", i, c.writes, noted())
		}
		c.elapsed += time.Minute
	}
	c.writes = 0
	if _, err := c.publisher.PublishLayers(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if noted() != "" || c.writes != 3 { // the note, the Role and the Secret of the other layer, which no node has been told of
		t.Errorf("%d writes, noted %q", c.writes, noted())
	}
}
