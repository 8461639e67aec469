package testenv

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestChangesAreSeen of objects that tests wait for, in a control plane where nothing else happens.
func TestChangesAreSeen(t *testing.T) {
	c := server.Client(t)
	for _, o := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "changed"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "changed"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "changed"}},
	} {
		awaitRest(t)
		for _, write := range []func() error{
			func() error { return c.Create(t.Context(), o) },
			func() error { return c.Delete(t.Context(), o) },
		} {
			change := changes.next()
			if err := write(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-change:
			case <-time.After(Limit):
				t.Fatalf("%T: a change is not seen", o)
			}
		}
	}
}

// awaitRest waits until nothing has changed for a second.
func awaitRest(t *testing.T) {
	t.Helper()
	for {
		select {
		case <-changes.next():
		case <-time.After(time.Second):
			return
		}
	}
}
