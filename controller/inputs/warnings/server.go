package warnings

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/controller/base/ports"
	policies "wmco/deploy/admission"
)

// mostConnections is how many there are at a time. Whoever takes all of them takes the warnings away, and nothing else.
const mostConnections = 256

// Serving is where requests are answered.
type Serving struct {
	// Address is host:port; empty or "0" answers nothing.
	Address string
	// Certificates is the folder of a mounted Secret of type kubernetes.io/tls. It is read at each handshake. While the
	// Secret does not exist, no handshake succeeds, and API servers apply objects without a warning.
	Certificates string
}

// AddTo adds the server to a manager; nothing where no address is given.
func (s Serving) AddTo(m manager.Manager, w Warner) error {
	if s.Address == "" || s.Address == "0" {
		return nil
	}
	handler, err := NewHandler(w)
	if err != nil {
		return err
	}
	return m.Add(runnable{Serving: s, handler: handler, log: w.Log})
}

// NewHandler returns what answers requests over HTTP. The library counts them in its metrics; its log would quote what
// is sent.
func NewHandler(w Warner) (http.Handler, error) {
	hook := &admission.Webhook{Handler: &w, LogConstructor: func(logr.Logger, *admission.Request) logr.Logger {
		return logr.Discard()
	}}
	counted, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{MetricsPath: policies.WarningsPath})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(policies.WarningsPath, newDoor(counted, cmp.Or(w.Limit, defaultLimit)))
	return mux, nil
}

// runnable listens while this process leads: the caches of another one are not filled, and it would fill them for
// whoever asks. The operator works without it.
type runnable struct {
	Serving
	handler http.Handler
	log     logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. A server that cannot listen is logged, and is not the end of the operator.
func (r runnable) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.Address)
	if err == nil {
		listener = tls.NewListener(netutil.LimitListener(listener, mostConnections), r.tlsConfig())
		err = (&manager.Server{Name: "warnings", Server: ports.Server(r.handler), Listener: listener,
			ShutdownTimeout: new(ports.StopWithin)}).Start(ctx)
	}
	if err != nil {
		r.log.Info("oc apply gives no warnings about Windows nodes (fix: choose another --webhook-address)",
			"error", err.Error())
	}
	return nil
}

// tlsConfig has one request at a time on a connection: the number of connections bounds that of requests.
func (r runnable) tlsConfig() *tls.Config {
	return &tls.Config{
		// Every API server that is served speaks it, and every TLS profile of a cluster allows it.
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(r.Certificates, corev1.TLSCertKey),
				filepath.Join(r.Certificates, corev1.TLSPrivateKeyKey))
			return &pair, err
		},
	}
}
