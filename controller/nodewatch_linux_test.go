package controller

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// watchCounter counts the watches of Nodes that a program requests.
type watchCounter struct {
	http.RoundTripper
	watches *atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (c watchCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/api/v1/nodes") && req.URL.Query().Get("watch") != "" {
		c.watches.Add(1)
	}
	return c.RoundTripper.RoundTrip(req)
}

// TestNodesAreWatchedOnce: a cache has one form of Nodes. Who asks it for another form begins a second watch, and all Nodes are in memory twice.
func TestNodesAreWatchedOnce(t *testing.T) {
	var watches atomic.Int32
	r := startWith(t, func(o *Options) {
		config := rest.CopyConfig(o.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchCounter{next, &watches} })
		o.Config = config
	})
	before := r.desired("")
	set := mirrorSet("watched-once", "watched-once.example.com")
	if err := r.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), set) })
	second := r.desired(before.Bundle)
	if err := r.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	r.desired(second.Bundle) // whatever reads Nodes for a bundle has done so by now
	if n := watches.Load(); n != 1 {
		t.Errorf("%d watches of Nodes", n)
	}
}
