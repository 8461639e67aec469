package controlplane

import (
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRestore: what was written after the copy is not there any more, and versions go on.
func TestRestore(t *testing.T) {
	c := start(t, Options{})
	admin := newClient(t, c.Config)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Data: map[string]string{"is": "saved"}}
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}
	saved := filepath.Join(t.TempDir(), "etcd")
	for _, do := range []func() error{
		func() error { return admin.Create(t.Context(), kept) },
		func() error { return c.Save(saved) },
		func() error { kept.Data["is"] = "changed"; return admin.Update(t.Context(), kept) },
		func() error { return admin.Create(t.Context(), late) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	last := late.ResourceVersion
	for range 2 { // a copy can be restored again
		if err := c.Restore(saved); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an answer", func() bool { return admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept) == nil })
		if kept.Data["is"] != "saved" {
			t.Errorf("it is %q", kept.Data["is"])
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(late), late); !apierrors.IsNotFound(err) {
			t.Errorf("what was created later: %v", err)
		}
		var list corev1.ConfigMapList
		if err := admin.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if version(t, list.ResourceVersion) <= version(t, last) {
			t.Errorf("the version is %s after %s", list.ResourceVersion, last)
		}
		last = list.ResourceVersion
	}
}

func version(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
