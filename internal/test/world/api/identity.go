package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Authority is what the server and its clients know each other by.
type Authority struct {
	// URL is where clients find the server.
	URL string
	// Certificate is that of the CA that has signed the certificates of clients and, as far as these see, of the server.
	Certificate *x509.Certificate
}

// SetAuthority has the server know clients by their certificates. It is called before the first of them makes a request.
func (s *Server) SetAuthority(a Authority) {
	s.authority = a
	s.clients = x509.NewCertPool()
	s.clients.AddCert(a.Certificate)
}

// Wrap has the requests of a configuration reach the server, as those of a connection do: the client looks for the server at its
// URL and checks the certificate of the server, the server checks that of the client. A configuration without credentials is
// system:anonymous.
func (s *Server) Wrap(c *rest.Config) {
	to, err := s.connect(c)
	c.Host, c.TLSClientConfig, c.Proxy, c.Dial = "http://world", rest.TLSClientConfig{}, nil, nil
	if err != nil {
		c.Transport = unconnected{err}
		return
	}
	c.Transport = to
}

// connect returns what makes requests with the certificate of a client.
func (s *Server) connect(c *rest.Config) (transport, error) {
	to := transport{server: s}
	if c.Host != s.authority.URL {
		return to, fmt.Errorf("dial %s: there is no server but %s", c.Host, s.authority.URL)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CAData)
	if _, err := s.authority.Certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return to, fmt.Errorf("tls: %w", err)
	}
	if len(c.CertData) == 0 {
		return to, nil
	}
	pair, err := tls.X509KeyPair(c.CertData, c.KeyData)
	if err != nil {
		return to, err
	}
	to.tls = &tls.ConnectionState{}
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return to, err
		}
		to.tls.PeerCertificates = append(to.tls.PeerCertificates, cert)
	}
	return to, nil
}

// unconnected is a client that reaches no server.
type unconnected struct{ err error }

// RoundTrip implements http.RoundTripper.
func (u unconnected) RoundTrip(*http.Request) (*http.Response, error) { return nil, u.err }

// withAuthentication finds out who makes a request, as API servers do.
func (s *Server) withAuthentication(next http.Handler) http.Handler {
	byCertificate := requestx509.NewDynamic(func() (x509.VerifyOptions, bool) {
		o := requestx509.DefaultVerifyOptions()
		o.Roots = s.clients
		return o, s.clients != nil
	}, requestx509.CommonNameUserConversion)
	known := group.NewAuthenticatedGroupAdder(union.New(byCertificate, bearertoken.New(s.tokens)))
	all := union.NewFailOnError(authenticator.RequestFunc(byContext), known, anonymous.NewAuthenticator(nil))
	return filters.WithAuthentication(next, all, filters.Unauthorized(s.codecs), nil, nil)
}

// byContext knows the user of a Transport.
func byContext(r *http.Request) (*authenticator.Response, bool, error) {
	who, ok := request.UserFrom(r.Context())
	return &authenticator.Response{User: who}, ok, nil
}

var errToken = errors.New("the token is not known, or has expired")

// AuthenticateToken implements authenticator.Token.
func (t *tokens) AuthenticateToken(_ context.Context, text string) (*authenticator.Response, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.issued[strings.TrimSpace(text)]
	if !ok || t.now().After(of.until) {
		return nil, false, errToken
	}
	return &authenticator.Response{User: of.user}, true, nil
}
