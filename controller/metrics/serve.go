package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle"
	"wmco/controller/base/ports"
	"wmco/render"
)

// Serving is how metrics are served.
type Serving struct {
	// Address is host:port; "0" serves nothing.
	Address string
	// Certificates is the folder of a mounted Secret of type kubernetes.io/tls. It is read at each handshake, so that a
	// renewed certificate is served at once. Without a folder, or while the Secret does not exist, the certificate is
	// self-signed.
	Certificates string
	// Profile returns the profile that the API server's object asks for, zero if it asks for none; a problem has a
	// message. gather.ServerTLSProfile is one.
	Profile func(configv1.APIServer) (render.TLSProfile, bundle.Finding)
	// Cluster is a cache of the API server's object, unstructured. It is set before the first handshake.
	Cluster client.Reader
}

// AddTo listens, and adds the server to a manager; nothing where no address is given. The server is not that of
// controller-runtime, which takes a megabyte of headers from whoever connects.
func (s *Serving) AddTo(ctx context.Context, m manager.Manager) error {
	if s.Address == "" || s.Address == "0" {
		return nil
	}
	certificate, err := s.certificateGetter()
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	filter, err := NewAccessFilter(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	handler, err := filter(m.GetLogger().WithName("metrics"),
		promhttp.HandlerFor(registry.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return m.Add(&manager.Server{Name: "metrics", Server: ports.Server(mux),
		Listener: tls.NewListener(listener, s.tlsConfig(certificate)), ShutdownTimeout: new(ports.StopWithin)})
}

// path is where the metrics are.
const path = "/metrics"

// tlsConfig looks the cluster's TLS profile up in the cache at each handshake: a change is followed by the next
// connection, and nothing restarts.
func (s *Serving) tlsConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	base := &tls.Config{NextProtos: []string{"http/1.1"}, GetCertificate: certificate} //nolint:gosec // the profile has the version; a scrape has no use for more than one stream
	c := base.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		profile, err := s.clusterTLSProfile(hello.Context())
		if err != nil {
			return nil, fmt.Errorf("reading the TLS profile of the cluster: %w", err)
		}
		return withTLSProfile(base, profile), nil
	}
	return c
}

// certificateGetter returns what gives the certificate of a connection.
func (s *Serving) certificateGetter() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	text, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost",
		[]net.IP{net.IPv4(127, 0, 0, 1)}, nil, "")
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if s.Certificates == "" {
			return &own, nil
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(s.Certificates, corev1.TLSCertKey),
			filepath.Join(s.Certificates, corev1.TLSPrivateKeyKey))
		if errors.Is(err, fs.ErrNotExist) {
			return &own, nil
		}
		return &pair, err
	}, nil
}

// clusterTLSProfile returns the TLS profile of the cluster. A cluster that asks for none, or for one that is refused
// (the inputs are refused as well, with a condition), has OpenShift's default.
func (s *Serving) clusterTLSProfile(ctx context.Context) (render.TLSProfile, error) {
	var own configv1.APIServer
	err := s.Cluster.Get(ctx, client.ObjectKey{Name: "cluster"}, &own)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return render.TLSProfile{}, err
	}
	profile, problem := s.Profile(own)
	if problem.Message != "" || profile.MinVersion == "" {
		own.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileIntermediateType}
		profile, _ = s.Profile(own)
	}
	return profile, nil
}

// withTLSProfile returns the configuration under a profile. Go has no choice among the suites of TLS 1.3.
func withTLSProfile(base *tls.Config, p render.TLSProfile) *tls.Config {
	c := base.Clone()
	c.MinVersion = versions[configv1.TLSProtocolVersion(p.MinVersion)]
	ids := map[string]uint16{}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		ids[suite.Name] = suite.ID
	}
	for _, name := range p.Ciphers {
		if id, ok := ids[name]; ok {
			c.CipherSuites = append(c.CipherSuites, id)
		}
	}
	return c
}

var versions = map[configv1.TLSProtocolVersion]uint16{
	configv1.VersionTLS10: tls.VersionTLS10, configv1.VersionTLS11: tls.VersionTLS11,
	configv1.VersionTLS12: tls.VersionTLS12, configv1.VersionTLS13: tls.VersionTLS13,
}
