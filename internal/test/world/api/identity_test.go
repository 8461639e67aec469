package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns a certificate for a name, by itself or by another one.
func issue(t *testing.T, name string, by *pair, until time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{user.NodesGroup}}, NotBefore: until.Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: by == nil,
	}
	p := pair{template, key}
	if by == nil {
		by = &p
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pair) text(t *testing.T) (cert, key []byte) {
	t.Helper()
	key, err := keyutil.MarshalPrivateKeyToPEM(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}), key
}

// TestClientsAreKnownByTheirCredentials: a client has the name in a certificate that the authority has signed, that is valid, and of which it has the key;
// and asks the server alone that has a certificate of the CA that it trusts.
func TestClientsAreKnownByTheirCredentials(t *testing.T) {
	s, err := New(t.Context(), Kinds())
	if err != nil {
		t.Fatal(err)
	}
	const url, name = "https://api.example.com:6443", nodeUser + "a"
	soon := time.Now().Add(time.Minute)
	ca, other := issue(t, "ca", nil, soon), issue(t, "ca", nil, soon)
	own := issue(t, name, &ca, soon)
	s.SetAuthority(Authority{URL: url, Certificate: ca.cert})
	trusted, _ := ca.text(t)
	untrusted, _ := other.text(t)
	_, otherKey := other.text(t)
	for name, tt := range map[string]struct {
		change func(*rest.Config)
		want   string
	}{
		"its own certificate":             {func(*rest.Config) {}, `404 nodes "a" not found`},
		"none":                            {func(c *rest.Config) { c.CertData, c.KeyData = nil, nil }, `403 nodes "a" is forbidden: User "system:anonymous"`},
		"a certificate of another CA":     {func(c *rest.Config) { c.CertData, c.KeyData = issueText(t, name, &other, soon) }, "401 Unauthorized"},
		"one that it has signed itself":   {func(c *rest.Config) { c.CertData, c.KeyData = issueText(t, name, nil, soon) }, "401 Unauthorized"},
		"one that has expired":            {func(c *rest.Config) { c.CertData, c.KeyData = issueText(t, name, &ca, time.Now().Add(-time.Second)) }, "401 Unauthorized"},
		"the certificate of another node": {func(c *rest.Config) { c.CertData, c.KeyData = issueText(t, nodeUser+"b", &ca, soon) }, `403 nodes "a" is forbidden: User "system:node:b"`},
		"a certificate without its key":   {func(c *rest.Config) { c.KeyData = otherKey }, "private key does not match public key"},
		"a token that is not known":       {func(c *rest.Config) { c.CertData, c.KeyData, c.BearerToken = nil, nil, "x" }, "401 Unauthorized"},
		"a server that it does not trust": {func(c *rest.Config) { c.CAData = untrusted }, "certificate signed by unknown authority"},
		"a server that is not there":      {func(c *rest.Config) { c.Host = "https://other.example.com:6443" }, "there is no server but " + url},
	} {
		t.Run(name, func(t *testing.T) {
			c := &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: trusted}}
			c.CertData, c.KeyData = own.text(t)
			tt.change(c)
			s.Wrap(c)
			if got := ask(t, c); !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func issueText(t *testing.T, name string, by *pair, until time.Time) (cert, key []byte) {
	t.Helper()
	return issue(t, name, by, until).text(t)
}

// ask returns the answer to the question for Node a.
func ask(t *testing.T, c *rest.Config) string {
	t.Helper()
	rt, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://world/api/v1/nodes/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := rt.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	if _, err := http.ParseTime(answer.Header.Get("Date")); err != nil {
		t.Error(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Message string }
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answer.StatusCode, " ", status.Message)
}
