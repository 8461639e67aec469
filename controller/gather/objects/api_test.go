package objects_test

import (
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv/readonly"
)

func newAPI(world []map[string]any) *readonly.API {
	a := &readonly.API{}
	for _, w := range world {
		a.Objects = append(a.Objects, unstructured.Unstructured{Object: w})
	}
	return a
}

// clientOf starts the server and returns a client for it.
func clientOf(t *testing.T, a *readonly.API) client.Client {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
