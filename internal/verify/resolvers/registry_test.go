package resolvers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wmco/internal/test/registrytest/distribution"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{key: key, cert: cert}, err
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// server returns a certificate for the names of registries, and its key, as PEM.
func (a authority) server(t *testing.T, names ...string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: names,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// storage is a directory with the images of registries; several may share it.
type storage struct {
	directory string
	// plain is the address of the registry without authentication, to which images are pushed.
	plain string
}

func newStorage(t *testing.T) storage {
	t.Helper()
	directory := t.TempDir()
	return storage{directory: directory, plain: distribution.Start(t, distribution.Options{Folder: directory}).Address}
}

// push pushes an image to the storage and returns its digest. Images with the same label are the same.
func (s storage) push(t *testing.T, repository, label string) string {
	t.Helper()
	i, err := NewImage(label)
	if err != nil {
		t.Fatal(err)
	}
	if err := Push(t.Context(), Client{Root: t.TempDir()}, s.plain+"/"+repository+":1", i); err != nil {
		t.Fatalf("pushing %s: %v", repository, err)
	}
	return i.Digest().String()
}

// network resolves the names of registries and records all requests to them.
type network struct {
	t         *testing.T
	addresses map[string]string
	ca, other authority

	mu     sync.Mutex
	record []request
}

// request is one that reached a registry or a token server.
type request struct {
	name, method, path, query string
	authorization             []string
	status                    int
	// user is the user in a form, which containerd sends to a token server when it has credentials.
	user string
}

// transport is the transport of a front.
type transport string

const (
	plainHTTP transport = "plain HTTP"
	trusted   transport = "TLS with a certificate of a CA in the machine's store"
	untrusted transport = "TLS with a certificate of another CA"
)

func newNetwork(t *testing.T) *network {
	return &network{t: t, addresses: map[string]string{}, ca: machineCA, other: otherCA}
}

// serve serves a name with a handler and records connections and requests.
func (n *network) serve(name string, how transport, handler http.Handler) {
	n.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		got := request{name: name, method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, authorization: r.Header["Authorization"]}
		handler.ServeHTTP(status, r)
		got.status, got.user = status.status, r.PostForm.Get("username")
		n.add(got)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.add(request{name: name, method: "CONNECT"})
		}
	}
	if ip, _, err := net.SplitHostPort(name); err == nil && net.ParseIP(ip).IsLoopback() {
		listener, err := net.Listen("tcp", name)
		if err != nil {
			n.t.Fatal(err)
		}
		_ = server.Listener.Close()
		server.Listener = listener
	}
	if how == plainHTTP {
		server.Start()
	} else {
		signer := n.ca
		if how == untrusted {
			signer = n.other
		}
		host, _, _ := strings.Cut(name, ":")
		cert, key := signer.server(n.t, host)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			n.t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
	}
	n.t.Cleanup(server.Close)
	n.addresses[withPort(name)] = server.Listener.Addr().String()
}

// registry puts a counting proxy in front of a registry.
func (n *network) registry(name string, how transport, address string) {
	n.t.Helper()
	n.serve(name, how, &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address}) },
		ErrorLog: log.New(io.Discard, "", 0),
	})
}

// down adds a name where nothing listens.
func (n *network) down(name string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.addresses[withPort(name)] = listener.Addr().String()
	if err := listener.Close(); err != nil {
		n.t.Fatal(err)
	}
}

// withPort adds the port of HTTPS if there is none.
func withPort(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return name + ":443"
}

func (n *network) add(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record = append(n.record, r)
}

// take returns the record since the last call.
func (n *network) take() record {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.record
	n.record = nil
	return r
}

// client returns a containerd with these hosts files on this network.
func (n *network) client(files Files) Client {
	n.t.Helper()
	root := n.t.TempDir()
	if err := files.Write(root); err != nil {
		n.t.Fatal(err)
	}
	return Client{Root: root, Update: func(c *http.Client) error {
		if t, ok := c.Transport.(*http.Transport); ok {
			t.Proxy, t.DialContext = nil, n.dial
		}
		return nil
	}}
}

func (n *network) dial(ctx context.Context, network, name string) (net.Conn, error) {
	address, found := n.addresses[name]
	if !found {
		n.add(request{name: name, method: "CONNECT"})
		return nil, fmt.Errorf("dialing %s: unknown name", name)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// record is the list of requests on a network.
type record []request

// contacted returns the names that got a request or a connection, in the order of the first one.
func (r record) contacted() string {
	var names []string
	for _, x := range r {
		if !slices.Contains(names, x.name) {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, " ")
}

// served returns the names that served manifests or blobs, sorted.
func (r record) served() string {
	var names []string
	for _, x := range r {
		if x.method == http.MethodGet && x.status == http.StatusOK && !slices.Contains(names, x.name) {
			names = append(names, x.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// authorizations returns the distinct Authorization headers that a name got, "" for none.
func (r record) authorizations(name string) []string {
	var list []string
	for _, x := range r {
		if x.name == name && x.method != "CONNECT" {
			list = append(list, strings.Join(x.authorization, " and "))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// tokens serves tokens for one user. Others get a token without permissions, as from other registries.
type tokens struct {
	signer         authority
	user, password string
}

func (s tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	user, password, _ := r.BasicAuth()
	access := []map[string]any{}
	if user == s.user && password == s.password {
		for _, scope := range strings.Fields(strings.Join(r.Form["scope"], " ")) {
			if part := strings.Split(scope, ":"); len(part) == 3 {
				access = append(access, map[string]any{"type": part[0], "name": part[1], "actions": []string{"pull"}})
			}
		}
	}
	now := time.Now().Unix()
	token, err := s.sign(map[string]any{
		"iss": "issuer.test", "aud": "registry.test", "sub": user, "jti": "1", "access": access, "iat": now, "nbf": now - 60, "exp": now + 600,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "access_token": token})
}

// sign returns a JSON web token that docker-registry accepts.
func (s tokens) sign(claims map[string]any) (string, error) {
	header, err := json.Marshal(map[string]any{"typ": "JWT", "alg": "ES256", "x5c": []string{base64.StdEncoding.EncodeToString(s.signer.cert.Raw)}})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	x, y, err := ecdsa.Sign(rand.Reader, s.signer.key, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)), nil
}
