package testenv

import (
	"context"
	"testing"

	"wmco/internal/test/testenv/manifests"
)

// Load creates the objects of files and folders, with their status, until the end of the test. Of two manifests of one
// object the later one wins, as with --from. The test fails if the server refuses an object or does not know one of its
// fields. Namespaces stay: without controllers, nothing could empty them.
func (e *Environment) Load(t testing.TB, paths ...string) {
	t.Helper()
	list, err := manifests.Read(paths...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := manifests.NewClient(e.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	namespaces, others := manifests.Namespaces(list)
	for _, n := range namespaces {
		if err := n.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range others {
		// Registered first: if the server refuses only the status, the object exists.
		t.Cleanup(func() {
			if err := m.Remove(context.Background(), c); err != nil {
				t.Errorf("%v", err)
			}
		})
		if e.Options.Controllers {
			// The garbage collector removes what has an owner that does not exist, and in manifests no owner has the
			// right UID.
			m.SetOwnerReferences(nil)
		}
		if err := m.Create(t.Context(), c); err != nil {
			t.Errorf("%v", err)
		}
	}
}
