package nodecli

import (
	"bufio"
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

	certs "wmco/gateway/identity"
	"wmco/gateway/places"
	"wmco/gateway/signatures"
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
	left := filepath.Join(dir, "state", signatures.FolderPrefix+"1")
	must(t, os.MkdirAll(filepath.Join(left, "inner"), 0o700))
	f := registryFlags{places: filepath.Join(dir, "places.json"), state: filepath.Join(dir, "state"), metrics: filepath.Join(dir, "metrics"), listen: "127.0.0.1:0"}
	blockedTable(t, f.places, "Image/first")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	log, stderr := io.Pipe()
	go func() {
		ended <- (Program{Stderr: stderr, Clock: ticking{}}).serveRegistry(ctx, f)
		_ = stderr.Close()
	}()
	lines := bufio.NewScanner(log)
	awaitLine := func(pattern string) string {
		for lines.Scan() {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
				return m[1]
			}
		}
		t.Fatalf("it ends without %s: %v", pattern, <-ended)
		return ""
	}
	address := awaitLine(`msg=started .*address=(\S+)`)
	awaitLine(`certificates were (made)`)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what an earlier process left stays: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
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
	if text, err := os.ReadFile(filepath.Join(f.metrics, "image-gateway.prom")); err != nil || !strings.Contains(string(text), `wmco_image_gateway_refused_total{registry="registry.invalid",cause="configuration"} 4`) {
		t.Errorf("%v: %s", err, text)
	}
	f.logFile = filepath.Join(dir, "log")
	must(t, (Program{Stderr: io.Discard, Clock: ticking{}}).serveRegistry(ctx, f)) // it has to stop
	if text, err := os.ReadFile(f.logFile); err != nil || !strings.Contains(string(text), "msg=stopped") {
		t.Errorf("%v: %s", err, text)
	}
}

// askGateway asks for an image as containerd does, and returns the status line.
func askGateway(t *testing.T, address, folder string) string {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(folder, certs.CA))
	must(t, err)
	own, err := os.ReadFile(filepath.Join(folder, certs.Client))
	must(t, err)
	pair, err := tls.X509KeyPair(own, own)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
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
