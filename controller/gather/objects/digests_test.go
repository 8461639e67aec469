package objects

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestCachedCluster returns what Cluster returns, also after an object has changed or was removed, and makes the digest of each version once.
func TestCachedCluster(t *testing.T) {
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "1"}, Data: map[string]string{"k": "v"}}
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "2"}}
	c := fake.NewClientBuilder().WithObjects(a, b).Build()
	r := &clusterReader{client: c, digests: &knownDigests{}}
	wants := []Want{{Version: "v1", Kind: "ConfigMap", Namespace: "n"}}
	same := func(want int) {
		t.Helper()
		plain, err := NewClusterReader(c).Read(t.Context(), wants)
		if err != nil || len(plain.Objects) != want {
			t.Fatalf("%d objects, %v", len(plain.Objects), err)
		}
		for range 2 {
			got, err := r.Read(t.Context(), wants)
			if err != nil || len(got.Objects) != want || len(r.digests.last) != want {
				t.Fatalf("%d objects, %d kept, %v", len(got.Objects), len(r.digests.last), err)
			}
			for i, o := range got.Objects {
				if o.ContentDigest() != plain.Objects[i].ContentDigest() || o.Content == "" {
					t.Errorf("%s: digest %s, without the cache %s", o.Ref, o.Content, plain.Objects[i].ContentDigest())
				}
				if o.Content = ""; !reflect.DeepEqual(o, plain.Objects[i]) {
					t.Errorf("%+v, without the cache %+v", o, plain.Objects[i])
				}
			}
		}
	}
	same(2)
	a.Data["k"] = "other"
	if err := c.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	same(2)
	// What did not change is not read for its digest: one that is noted for it counts.
	r.digests.last[version{"v1", "ConfigMap", "2", "999"}] = "noted"
	if got, err := r.Read(t.Context(), wants); err != nil || !slices.ContainsFunc(got.Objects, func(o Object) bool { return o.Name == "b" && o.Content == "noted" }) {
		t.Errorf("%+v, %v", got.Objects, err)
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	same(1)
}
