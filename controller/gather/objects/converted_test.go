package objects

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestCachedCluster returns what Cluster returns, also after an object has changed or was removed, and converts each version once.
func TestCachedCluster(t *testing.T) {
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "1"}, Data: map[string]string{"k": "v"}}
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "2"}}
	c := fake.NewClientBuilder().WithObjects(a, b).Build()
	r := &clusterReader{client: c, converted: &converted{}}
	wants := []Want{{Version: "v1", Kind: "ConfigMap", Namespace: "n"}}
	same := func(want int) {
		t.Helper()
		plain, err := NewClusterReader(c).Read(t.Context(), wants)
		if err != nil || len(plain.Objects) != want {
			t.Fatalf("%d objects, %v", len(plain.Objects), err)
		}
		for range 2 {
			got, err := r.Read(t.Context(), wants)
			if err != nil || len(got.Objects) != want || len(r.converted.last) != want {
				t.Fatalf("%d objects, %d kept, %v", len(got.Objects), len(r.converted.last), err)
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
	first := &r.converted.last[version{"v1", "ConfigMap", "2", "999"}].JSON[0]
	a.Data["k"] = "other"
	if err := c.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	same(2)
	if again := &r.converted.last[version{"v1", "ConfigMap", "2", "999"}].JSON[0]; again != first {
		t.Error("what did not change was converted again")
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	same(1)
}
