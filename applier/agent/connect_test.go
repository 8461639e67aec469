package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"wmco/internal/test/testenv"
)

// realClock is the system's.
type realClock struct{ began time.Time }

func newRealClock() realClock { return realClock{time.Now()} }

func (realClock) Now() time.Time { return time.Now() }

func (c realClock) SinceBoot() time.Duration { return time.Since(c.began) }

func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// attempts is a clock that calls a function at each wait, and on which the time since boot is set.
type attempts struct {
	realClock
	wait func()
	boot time.Duration
}

func (a *attempts) After(time.Duration) <-chan time.Time {
	a.wait()
	return time.After(time.Millisecond)
}

func (a *attempts) SinceBoot() time.Duration { return a.boot }

// windows are the files of a host.
type windows struct {
	mu    sync.Mutex
	files map[string]string
}

func (w *windows) read(path string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, ok := w.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (w *windows) write(path, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[path] = text
}

const (
	hostKubeconfig  = `C:\k\wicd-kubeconfig`
	hostCertificate = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`
)

// toNowhere is a kubeconfig for a server that does not listen.
func toNowhere() string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: node}}]\n"+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\nusers: [{name: node, user: {client-certificate: '%s', client-key: '%s'}}]\n", hostCertificate, hostCertificate)
}

// TestTheClusterIsConnectedToWhenTheKubeletHasItsCertificate: until then the agent works without it.
func TestTheClusterIsConnectedToWhenTheKubeletHasItsCertificate(t *testing.T) {
	host := &windows{files: map[string]string{}}
	steps := []func(){
		func() {}, // nothing is there yet
		func() { host.write(hostKubeconfig, toNowhere()[:60]) },
		func() { host.write(hostKubeconfig, toNowhere()) },
		func() { host.write(hostCertificate, certificate(t, "somebody")) },
		func() { host.write(hostCertificate, certificate(t, "system:node:win-a")) },
	}
	waits := 0
	clock := &attempts{wait: func() {
		if waits < len(steps) {
			steps[waits]()
		}
		waits++
	}}
	c := NewAPIServer(Connection{Kubeconfig: hostKubeconfig, ReadFile: host.read, Log: slog.New(slog.DiscardHandler), Clock: clock})
	if _, err := c.Heartbeat(t.Context()); !errors.Is(err, ErrNotConnected) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Watch(ctx, func(Node) {}); close(ended) }()
	// There is no listener: the request fails in another way once it is made.
	if err := testenv.Eventually(t.Context(), "a connection", func() bool {
		_, err := c.Heartbeat(t.Context())
		return err != nil && !errors.Is(err, ErrNotConnected)
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	<-ended
	if waits > len(steps) {
		t.Errorf("connected after %d attempts that failed, want at most %d", waits, len(steps))
	}
}

// TestARenewedCertificateIsUsed: the kubelet replaces its certificate while the agent runs. What cannot be read in between keeps the
// one before.
func TestARenewedCertificateIsUsed(t *testing.T) {
	host := &windows{files: map[string]string{hostKubeconfig: toNowhere(), hostCertificate: certificate(t, "system:node:win-a")}}
	clock := &attempts{}
	c := NewAPIServer(Connection{Kubeconfig: hostKubeconfig, ReadFile: host.read, Log: slog.New(slog.DiscardHandler), Clock: clock})
	first := connection(t, c)
	for _, step := range []struct {
		what    string
		pass    time.Duration
		text    string
		renewed bool
	}{
		{"a new one is not noticed at once", time.Second, certificate(t, "system:node:win-a"), false},
		{"but soon", time.Minute, "", true},
		{"it stays", time.Minute, "", false},
		{"half a file", time.Minute, "-----BEGIN", false},
		{"whole again", time.Minute, certificate(t, "system:node:win-a"), true},
		{"a damaged kubeconfig", time.Minute, toNowhere()[:60], false},
		{"a whole one", time.Minute, toNowhere(), false},
	} {
		switch {
		case strings.HasPrefix(step.text, "apiVersion"):
			host.write(hostKubeconfig, step.text)
		case step.text != "":
			host.write(hostCertificate, step.text)
		}
		clock.boot += step.pass
		next := connection(t, c)
		if renewed := next != first; renewed != step.renewed {
			t.Errorf("%s: renewed is %v", step.what, renewed)
		}
		first = next
	}
}

func connection(t *testing.T, c *APIServer) *link {
	t.Helper()
	l, err := c.currentLink()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kubeconfig writes a configuration as files, as the kubelet does: certificate and key are in one.
func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	folder := t.TempDir()
	pem, ca, path := filepath.Join(folder, "current.pem"), filepath.Join(folder, "ca.crt"), filepath.Join(folder, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: node}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: node, user: {client-certificate: %q, client-key: %q}}]\n", "https://"+strings.TrimPrefix(c.Host, "https://"), ca, pem, pem)
	for file, data := range map[string][]byte{pem: append(append([]byte{}, c.CertData...), c.KeyData...), ca: c.CAData, path: []byte(text)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// certificate returns a client certificate with its key, as the kubelet writes them into one file.
func certificate(t testing.TB, user string) string {
	t.Helper()
	return signed(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour)})
}

// nodeSubject is that of the kubelet.
func nodeSubject() pkix.Name {
	return pkix.Name{CommonName: userPrefix + nodeName, Organization: []string{"system:nodes"}}
}

// signed returns a certificate that signs itself, with its key.
func signed(t testing.TB, template *x509.Certificate) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Error(err)
		return ""
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Error(err)
		return ""
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Error(err)
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
}
