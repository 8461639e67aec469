package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Options are how registries are reached.
type Options struct {
	// Roots are the trusted CAs; nil are those of the system.
	Roots *x509.CertPool
	// Proxy is the cluster's.
	Proxy httpproxy.Config
}

// Limits of one request. A layer may take longer: readLimit is how long a registry may send nothing of it.
const (
	dialLimit   = 10 * time.Second
	headerLimit = 30 * time.Second
	readLimit   = time.Minute
	// perRegistry is how many connections without a request stay open.
	perRegistry = 8
)

// Transports returns the transports of a Client.
func (o Options) Transports() (verified, insecure *http.Transport) {
	choose := o.Proxy.ProxyFunc()
	dialer := net.Dialer{Timeout: dialLimit, ControlContext: refuseLinkLocal}
	verified = &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			via, err := choose(r.URL)
			if err != nil { // it quotes the address of the proxy, which may hold a password
				return nil, errors.New("the address of the proxy is not valid")
			}
			return via, nil
		},
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialLimit, ResponseHeaderTimeout: headerLimit, MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost: perRegistry, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		DisableCompression: true, // digests are of what is sent
	}
	insecure = verified.Clone()
	insecure.TLSClientConfig.InsecureSkipVerify = true //nolint:gosec // insecureRegistries of Image/cluster ask for it
	return verified, insecure
}

// refuseLinkLocal keeps a registry from sending the node, by a redirect or as its token server, to the cloud's instance metadata.
func refuseLinkLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && a.Addr().Unmap().IsLinkLocalUnicast() {
		return errors.New("a link-local address")
	}
	return nil
}

// limitedBody ends a body from which nothing comes for readLimit.
type limitedBody struct {
	io.ReadCloser
	timer  *time.Timer
	cancel context.CancelFunc
}

func newLimitedBody(b io.ReadCloser, cancel context.CancelFunc) *limitedBody {
	return &limitedBody{b, time.AfterFunc(readLimit, cancel), cancel}
}

func (b *limitedBody) Read(p []byte) (int, error) {
	b.timer.Reset(readLimit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Reset(readLimit)
	return n, err //nolint:wrapcheck // io.EOF is compared
}

func (b *limitedBody) Close() error {
	b.timer.Stop()
	b.cancel()
	return b.ReadCloser.Close() //nolint:wrapcheck // it is not looked at
}
