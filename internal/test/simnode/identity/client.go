package identity

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

// Context returns a context whose log is that of a program, for libraries that log through their context.
func Context(ctx context.Context, log *slog.Logger) context.Context {
	return klog.NewContext(ctx, logr.FromSlogHandler(log.Handler()))
}

// Client makes requests with the certificate that a Manager has.
type Client struct {
	// Config has the transport. Its requests are anonymous before there is a certificate.
	Config *rest.Config
	HTTP   *http.Client

	manager certificate.Manager
	dialer  *connrotation.Dialer
	last    *tls.Certificate
}

// Wrap changes how requests of a configuration are sent: a test has a transport of its own. Nil changes nothing.
type Wrap func(*rest.Config)

// Config returns a copy of a configuration that is changed.
func (w Wrap) Config(c *rest.Config) *rest.Config {
	if w == nil {
		return c
	}
	c = rest.CopyConfig(c)
	w(c)
	return c
}

// NewClient returns a client for the server of a configuration.
func NewClient(server *rest.Config, m certificate.Manager, w Wrap) (*Client, error) {
	anonymous := rest.AnonymousClientConfig(server)
	if w != nil {
		return newWrappedClient(anonymous, m, w), nil
	}
	settings, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return nil, err
	}
	c := &Client{manager: m, dialer: connrotation.NewDialer((&net.Dialer{
		Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
	}).DialContext), last: m.Current()}
	settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := m.Current(); current != nil {
			return current, nil
		}
		return &tls.Certificate{}, nil
	}
	transport := &http.Transport{
		TLSClientConfig: settings, DialContext: c.dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	c.Config = &rest.Config{Host: anonymous.Host, APIPath: anonymous.APIPath, Transport: transport, QPS: -1}
	c.HTTP = &http.Client{Transport: transport}
	return c, nil
}

// Renewed closes all connections if the certificate is another one since it was last called: it is used for new ones
// only.
func (c *Client) Renewed() {
	current := c.manager.Current()
	if current == nil || current == c.last {
		return
	}
	if c.last != nil {
		c.Close()
	}
	c.last = current
}

// Close closes all connections. Those without a request are forgotten first: HTTP/2 would send the next request on one
// that is closed, until it has read its end.
func (c *Client) Close() {
	c.HTTP.CloseIdleConnections()
	c.dialer.CloseAll()
}

// newWrappedClient returns a client whose requests have the certificate of the moment: there are no connections.
func newWrappedClient(server *rest.Config, m certificate.Manager, w Wrap) *Client {
	sends := &wrapped{server: server, manager: m, wrap: w}
	return &Client{
		manager: m, dialer: connrotation.NewDialer((&net.Dialer{}).DialContext), last: m.Current(),
		Config: &rest.Config{Host: server.Host, APIPath: server.APIPath, Transport: sends, QPS: -1}, HTTP: &http.Client{Transport: sends},
	}
}

// wrapped sends each request with the certificate that its manager has.
type wrapped struct {
	server  *rest.Config
	manager certificate.Manager
	wrap    Wrap

	mu   sync.Mutex
	of   *tls.Certificate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *wrapped) RoundTrip(r *http.Request) (*http.Response, error) {
	next, err := w.transport()
	if err != nil {
		return nil, err
	}
	return next.RoundTrip(r)
}

func (w *wrapped) transport() (http.RoundTripper, error) {
	current := w.manager.Current()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil && w.of == current {
		return w.next, nil
	}
	c := rest.CopyConfig(w.server)
	if current != nil {
		for _, der := range current.Certificate {
			c.CertData = append(c.CertData, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})...)
		}
		key, err := keyutil.MarshalPrivateKeyToPEM(current.PrivateKey)
		if err != nil {
			return nil, err
		}
		c.KeyData = key
	}
	w.wrap(c)
	next, err := rest.TransportFor(c)
	w.of, w.next = current, next
	return next, err
}

// Clients chooses who asks for the next certificate: the holder of the current one, or first the bootstrap user.
func Clients(bootstrap *rest.Config, own func() *Client) certificate.ClientsetFunc {
	return func(current *tls.Certificate) (kubernetes.Interface, error) {
		if c := own(); current != nil && c != nil {
			return kubernetes.NewForConfigAndClient(c.Config, c.HTTP)
		}
		return kubernetes.NewForConfig(bootstrap)
	}
}
