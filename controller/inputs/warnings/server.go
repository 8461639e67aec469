package warnings

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"strconv"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policies "wmco/deploy/admission"
)

// Serving is where requests are answered.
type Serving struct {
	// Address is host:port; empty or "0" answers nothing.
	Address string
	// Certificates is the folder of a mounted Secret of type kubernetes.io/tls. It is read at each handshake. While the Secret does not exist, no
	// handshake succeeds, and API servers apply objects without a warning.
	Certificates string
}

// AddTo adds the server to a manager; nothing where no address is given.
func (s Serving) AddTo(m manager.Manager, w Warner) error {
	if s.Address == "" || s.Address == "0" {
		return nil
	}
	host, service, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(s.Certificates, corev1.TLSCertKey), filepath.Join(s.Certificates, corev1.TLSPrivateKeyKey))
			return &pair, err
		}
	}}})
	server.Register(policies.WarningsPath, &admission.Webhook{Handler: NewWarner(w)})
	return m.Add(runnable{Server: server, Log: w.Log})
}

// runnable makes a server one that a manager runs whether it leads or not. The operator works without it.
type runnable struct {
	webhook.Server
	Log logr.Logger
}

// Start implements manager.Runnable. A server that cannot listen is said, and is not the end of the operator.
func (r runnable) Start(ctx context.Context) error {
	if err := r.Server.Start(ctx); err != nil {
		r.Log.Info("oc apply gives no warnings about Windows nodes (fix: choose another --webhook-address)", "error", err.Error())
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }
