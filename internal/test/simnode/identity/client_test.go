package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"

	"wmco/internal/hostsim"
)

// manager has the certificate that it is given.
type manager struct {
	certificate.Manager
	mu      sync.Mutex
	current *tls.Certificate
}

func (m *manager) Current() *tls.Certificate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

func (m *manager) set(c *tls.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = c
}

// newPair returns a certificate and its key.
func newPair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}

// TestARenewedCertificateIsUsedAtOnce although the connection to the server stands.
func TestARenewedCertificateIsUsedAtOnce(t *testing.T) {
	host := hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch()))
	store := Store{Files: host, Folder: `C:\var\lib\kubelet\pki`, Prefix: "kubelet-client", Now: host.Now}
	if _, err := store.Current(); err == nil {
		t.Error("a store without files has a certificate")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "anonymous"
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			name = certs[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, name)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	m := &manager{}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := NewClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(want string) {
		t.Helper()
		answer, err := c.HTTP.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil || string(text) != want {
			t.Errorf("asked as %q, want %q (%v)", text, want, err)
		}
	}
	ask("anonymous")
	c.Close()
	for _, name := range []string{"first", "second", "third"} {
		cert, key := newPair(t, name)
		pair, err := store.Update(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		m.set(pair)
		c.Renewed()
		ask(name)
		if kept, err := store.Current(); err != nil || kept.Leaf.Subject.CommonName != name {
			t.Errorf("kept %v, %v", kept, err)
		}
	}
	if _, err := store.Update([]byte("no"), []byte("key")); err == nil {
		t.Error("what is no certificate was kept")
	}
}
