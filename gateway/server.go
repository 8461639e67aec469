package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"wmco/gateway/identity"
)

// Clock is the time source of a Server; tests replace it.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Server accepts connections from containerd only. A client must present the certificate in Certificates; otherwise any user of the host could pull images
// with the credentials in the table.
type Server struct {
	Handler      *Handler
	Certificates identity.Folder
	Clock        Clock
	Log          *slog.Logger
}

const (
	// maxConnections is more than containerd opens: three layers of each of some hundred pulls.
	maxConnections = 1024
	// helloLimit is how long a connection may take until its first request, with the handshake; idleLimit until the next one.
	helloLimit = 5 * time.Second
	idleLimit  = 2 * time.Minute
	maxHeader  = 64 << 10
	// checkEvery is how often the certificates are looked at, countEvery how often numbers are written.
	checkEvery = 12 * time.Hour
	countEvery = time.Minute
	// stopLimit is how long pulls have to end when the service stops. containerd continues what was cut.
	stopLimit = 10 * time.Second
)

// Run serves a listener until the context ends.
func (s Server) Run(ctx context.Context, l net.Listener) error {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return errors.New("the gateway listens at a TCP address only")
	}
	var current atomic.Pointer[tls.Config]
	renew := func() error {
		config, made, err := identity.EnsureCertificates(s.Certificates, address.IP, s.Clock.Now())
		if err != nil {
			return fmt.Errorf("certificates of the image gateway: %w", err)
		}
		current.Store(config)
		if made {
			s.Log.Info("certificates were made for containerd and the gateway")
		}
		return nil
	}
	if err := renew(); err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.Handler, ReadHeaderTimeout: helloLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	listener := tls.NewListener(netutil.LimitListener(l, maxConnections), &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil },
	})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer s.Handler.WriteCounts()
	check := s.Clock.After(checkEvery)
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("serving %s: %w", address, err)
		case <-s.Clock.After(countEvery):
			s.Handler.WriteCounts()
		case <-check:
			check = s.Clock.After(checkEvery)
			if err := renew(); err != nil {
				s.Log.Error("the certificates stay as they are", "error", err)
			}
		case <-ctx.Done():
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
			defer cancel()
			if server.Shutdown(stopping) != nil {
				_ = server.Close()
			}
			return nil
		}
	}
}
