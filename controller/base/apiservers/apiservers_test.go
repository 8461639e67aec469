package apiservers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

const token = "token-of-the-operator"

// apiServer is one that answers with a version and a certificate for a name.
type apiServer struct {
	*httptest.Server
	ca []byte
	// tokens counts requests that had the operator's token.
	tokens *atomic.Int64
}

func newAPIServer(t *testing.T, version, name string) apiServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := apiServer{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tokens: &atomic.Int64{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			s.tokens.Add(1)
		}
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		git, emulated, _ := strings.Cut(version, " emulates 1.")
		_, _ = fmt.Fprintf(w, `{"gitVersion":%q,"emulationMajor":"1","emulationMinor":%q}`, git, emulated)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// endpoints is the EndpointSlice of servers that listen on loopback, each at a port of its own.
func endpoints(t *testing.T, urls ...string) *discoveryv1.EndpointSlice {
	t.Helper()
	s := &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}}}}
	for _, u := range urls {
		_, text, err := net.SplitHostPort(u[len("https://"):])
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		number := int32(port)
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Port: &number})
	}
	return s
}

// TestEachAPIServerIsAsked, the one behind the operator's address and the others. One that is down is left out, and so is what has no
// certificate of an API server: it gets no token.
func TestEachAPIServerIsAsked(t *testing.T) {
	usual, old := newAPIServer(t, "v1.36.3", serviceName), newAPIServer(t, "v1.35.4", serviceName)
	stranger, down := newAPIServer(t, "v1.31.0", "other.example.com"), newAPIServer(t, "v1.30.0", serviceName)
	down.Close()
	config := &rest.Config{Host: usual.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: slices.Concat(usual.ca, old.ca, stranger.ca)}}
	list := endpoints(t, usual.URL, old.URL, stranger.URL, down.URL)
	// The operator's own connection is made as always; only its certificate is for a name in this test.
	named := rest.CopyConfig(config)
	named.ServerName = serviceName
	client, err := rest.HTTPClientFor(named)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServers(config, client, func(context.Context) (*discoveryv1.EndpointSlice, error) { return list, nil })
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ListVersions(t.Context())
	if want := []string{"v1.36.3", "v1.36.3", "v1.35.4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if now, err := s.ServerTime(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("the time of the API server is %s, %v", now, err)
	}
	if old.tokens.Load() != 1 || stranger.tokens.Load() != 0 {
		t.Errorf("the token was sent %d times to an API server, and %d times to another server", old.tokens.Load(), stranger.tokens.Load())
	}
}

// TestTheEmulatedVersionIsAnswered by an API server that behaves as an older one.
func TestTheEmulatedVersionIsAnswered(t *testing.T) {
	usual := newAPIServer(t, "v1.36.3 emulates 1.35", "127.0.0.1.example.com")
	config := &rest.Config{Host: usual.URL, TLSClientConfig: rest.TLSClientConfig{CAData: usual.ca, ServerName: "127.0.0.1.example.com"}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServers(config, client, func(context.Context) (*discoveryv1.EndpointSlice, error) { return &discoveryv1.EndpointSlice{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.ListVersions(t.Context()); err != nil || !slices.Equal(got, []string{"v1.35.0+emulated-by-v1.36.3"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestWhatIsNotKnownOfAPIServers: without an EndpointSlice, the one that answers counts; without an answer there is no version.
func TestWhatIsNotKnownOfAPIServers(t *testing.T) {
	usual := newAPIServer(t, "v1.36.3", "127.0.0.1.example.com")
	config := &rest.Config{Host: usual.URL, TLSClientConfig: rest.TLSClientConfig{CAData: usual.ca, ServerName: "127.0.0.1.example.com"}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "endpointslices"}, slice)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, slice, nil)
	for name, tt := range map[string]struct {
		err  error
		want int
	}{"no EndpointSlice": {gone, 1}, "one that may not be read": {forbidden, 0}} {
		s, err := newServers(config, client, func(context.Context) (*discoveryv1.EndpointSlice, error) { return nil, tt.err })
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.ListVersions(t.Context())
		if len(got) != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	usual.Close()
	s, err := newServers(config, client, func(context.Context) (*discoveryv1.EndpointSlice, error) { return nil, gone })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.ListVersions(t.Context()); err == nil {
		t.Errorf("a version without an answer: %v", got)
	}
}

// TestTheVersionThatAnAPIServerEmulates counts: its kubelets may not be newer.
func TestTheVersionThatAnAPIServerEmulates(t *testing.T) {
	for _, tt := range []struct{ git, major, minor, want string }{
		{"v1.31.14", "", "", "v1.31.14"}, // as before 1.33
		{"v1.36.3", "1", "36", "v1.36.3"},
		{"v1.36.3", "1", "35", "v1.35.0+emulated-by-v1.36.3"},
		{"v1.36.3+1234567", "1", "33", "v1.33.0+emulated-by-v1.36.3"},
		{"v1.36.3", "1", "37", "v1.36.3"},
		{"v1.36.3", "1", "thirty", "v1.36.3"},
		{"unknown", "1", "35", "unknown"}, // refused where it is read
	} {
		got := EffectiveVersion(version.Info{GitVersion: tt.git, EmulationMajor: tt.major, EmulationMinor: tt.minor})
		if got != tt.want {
			t.Errorf("%s that emulates %s.%s: %s, want %s", tt.git, tt.major, tt.minor, got, tt.want)
		}
	}
}
