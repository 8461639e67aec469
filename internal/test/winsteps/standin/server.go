// Package standin has servers for one Windows machine that is no node of a cluster: an API server that knows one Node,
// and a registry.
package standin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Listen serves a handler by TLS on an address of this machine until the returned function is called. The certificate
// is that of the folder.
func Listen(ctx context.Context, address, certificates string, h http.Handler) (stop func() error, err error) {
	config, err := serverTLS(certificates)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h, TLSConfig: config, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	return func() error {
		err := server.Close() // a watch would not end otherwise
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
