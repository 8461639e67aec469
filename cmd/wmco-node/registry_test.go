package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	certs "wmco/gateway/identity"
	"wmco/gateway/places"
)

// blockedTable is a table in which an object blocks a registry.
func blockedTable(t *testing.T, path, object string) {
	t.Helper()
	data, err := places.Table{
		Routed: []string{places.All}, Registries: []places.Registry{{Scope: "registry.invalid", Blocked: true, Objects: []string{object}}},
	}.Encode()
	must(t, err)
	must(t, os.WriteFile(path+".new", data, 0o600))
	must(t, os.Rename(path+".new", path))
}

// TestTheGatewayServesItsFile starts the program with files and a port, as the service is.
func TestTheGatewayServesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := registryFlags{places: filepath.Join(dir, "places.json"), state: filepath.Join(dir, "state"), listen: "127.0.0.1:0", logFile: filepath.Join(dir, "log")}
	blockedTable(t, f.places, "Image/first")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&app{stderr: io.Discard, clock: clock{}}).serveRegistry(ctx, f) }()
	address := ""
	for end := time.Now().Add(5 * time.Minute); address == ""; time.Sleep(time.Millisecond) {
		log, _ := os.ReadFile(f.logFile)
		if m := regexp.MustCompile(`msg=started .*address=(\S+)`).FindSubmatch(log); m != nil {
			address = string(m[1])
		}
		if time.Now().After(end) {
			t.Fatalf("it does not start:\n%s", log)
		}
	}
	for _, object := range []string{"Image/first", "Image/second", "Image/the-third-is-longer"} {
		blockedTable(t, f.places, object)
		if status := askGateway(t, address, f.state); !strings.Contains(status, "403 registry.invalid/a:1 is at no place: registry.invalid/a: not asked, registry.invalid must not be contacted ("+object+")") {
			t.Errorf("%s: %s", object, status)
		}
	}
	must(t, os.WriteFile(f.places, []byte(`{"schema": 1, "routed": [`), 0o600))
	if status := askGateway(t, address, f.state); !strings.Contains(status, "Image/the-third-is-longer") {
		t.Errorf("a damaged file: %s", status)
	}
	cancel()
	must(t, <-ended)
}

// askGateway asks for an image as containerd does, and returns the status line.
func askGateway(t *testing.T, address, folder string) string {
	t.Helper()
	var pool *x509.CertPool
	var pair tls.Certificate
	for end := time.Now().Add(5 * time.Minute); pool == nil; time.Sleep(time.Millisecond) { // it makes the certificates after its first line
		ca, err := os.ReadFile(filepath.Join(folder, certs.CA))
		own, err2 := os.ReadFile(filepath.Join(folder, certs.Client))
		if err == nil && err2 == nil {
			if pair, err = tls.X509KeyPair(own, own); err == nil {
				pool = x509.NewCertPool()
				pool.AppendCertsFromPEM(ca)
			}
		}
		if time.Now().After(end) {
			t.Fatal("it makes no certificates")
		}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	token := ""
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "https://"+address+"/v2/a/manifests/1?ns=registry.invalid", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := transport.RoundTrip(r)
		must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			return response.Status
		}
		r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/token", nil)
		must(t, err)
		response, err = transport.RoundTrip(r)
		must(t, err)
		text, err := io.ReadAll(response.Body)
		must(t, err)
		_ = response.Body.Close()
		token = regexp.MustCompile(`"token":"([^"]+)"`).FindStringSubmatch(string(text))[1]
	}
	return "no answer with a token"
}

// TestTheGatewayListensOnLoopbackOnly: from elsewhere, its registries could be read with the credentials of the node.
func TestTheGatewayListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "10.0.0.1:22629", "localhost:0", "127.0.0.1", "[::]:0"} {
		if l, err := listenLoopback(t.Context(), address); err == nil {
			_ = l.Close()
			t.Errorf("it listens on %s", address)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
