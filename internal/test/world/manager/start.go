package manager

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/world/api"
)

// Options are what a cluster has around its nodes.
type Options struct {
	// URL is that of the API server, as nodes see it.
	URL string
	// Certificates is how long certificates are valid.
	Certificates time.Duration
	// Nodes is how Nodes are watched.
	Nodes Lifecycle
	// Run are other parts, which run until their context ends.
	Run []func(context.Context) error
	// Report is called with the error of a part that ends before its context.
	Report func(error)
}

// Start gives an API server a CA and what the objects of the example cluster say about it, and starts all parts. It returns the CA.
func Start(ctx context.Context, server *api.Server, admin *rest.Config, o Options) (*Authority, error) {
	ca, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	server.SetAuthority(api.Authority{URL: o.URL, Certificate: ca.Certificate})
	if err := cluster.ConnectTo(ctx, admin, cluster.Endpoint{URL: o.URL, CA: ca.PEM, ClientCA: ca.PEM}); err != nil {
		return nil, err
	}
	if err := MakeRoles(ctx, admin); err != nil {
		return nil, err
	}
	o.Nodes.Log = slog.New(slog.DiscardHandler)
	parts := append([]func(context.Context) error{
		func(ctx context.Context) error {
			return ca.Run(ctx, admin, Signing{Lifetime: o.Certificates, Log: o.Nodes.Log})
		},
		func(ctx context.Context) error { return o.Nodes.Run(ctx, admin) },
	}, o.Run...)
	for _, run := range parts {
		go func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				o.Report(err)
			}
		}()
	}
	return ca, nil
}
