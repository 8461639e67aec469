package agent

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"wmco/internal/test/testenv"
)

// dated is a clock of a host whose time is another one.
type dated struct {
	realClock
	by   time.Duration
	boot time.Duration
}

func (d *dated) Now() time.Time { return d.realClock.Now().Add(d.by) }

func (d *dated) SinceBoot() time.Duration { return d.boot }

func (*dated) After(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }

// TestAnExpiredCertificateIsTold asks the real API server with a certificate that it does not accept. When the host has joined again,
// its new certificate is used.
func TestAnExpiredCertificateIsTold(t *testing.T) {
	config := server.Node(t, nodeName)
	newRealPlayground(t)
	path := kubeconfig(t, config)
	file := strings.TrimSuffix(path, "kubeconfig") + "current.pem"
	right, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		name, text string
		by         time.Duration
		want       string
	}{
		{"expired", validCertificate(t, -2*year, -year), 0, "expired on"},
		{"not valid yet", validCertificate(t, year, 2*year), 0, "fix: check its clock"},
		{"of another CA", validCertificate(t, -year, year), 0, "does not accept"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		clock := &dated{by: tt.by}
		var log logged
		c := NewAPIServer(Connection{Kubeconfig: path, ReadFile: os.ReadFile, Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: clock})
		if _, err := c.Heartbeat(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		told := make(chan Node, 10)
		go c.Watch(t.Context(), func(n Node) { told <- n })
		if err := testenv.Eventually(t.Context(), "the log", func() bool { return strings.Contains(log.String(), tt.want) }); err != nil {
			t.Errorf("%s: %v\n%s", tt.name, err, log.String())
		}
		if err := os.WriteFile(file, right, 0o600); err != nil {
			t.Fatal(err)
		}
		clock.boot += renewPause
		if _, err := c.Heartbeat(t.Context()); err != nil {
			t.Errorf("%s: after it joined again: %v", tt.name, err)
		}
		select {
		case <-told:
		case <-time.After(2 * time.Minute):
			t.Errorf("%s: the Node is not followed again", tt.name)
		}
	}
}

func validCertificate(t *testing.T, from, to time.Duration) string {
	t.Helper()
	return signed(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: nodeSubject(), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to)})
}

// TestAServerWhoseCertificateIsNotValidYetOrAnyLonger is what a host sees whose clock is wrong.
func TestAServerWhoseCertificateIsNotValidYetOrAnyLonger(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		text := signed(t, &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: nodeSubject(), NotBefore: time.Now().Add(by - time.Minute), NotAfter: time.Now().Add(by + time.Minute),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		})
		pair, err := tls.X509KeyPair([]byte(text), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.TLS, s.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		defer s.Close()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
		own := []byte(certificate(t, userPrefix+nodeName))
		l, err := newLink(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: own, KeyData: own}}, Connection{Clock: newRealClock()})
		if err != nil {
			t.Fatal(err)
		}
		err = l.doRequest(t.Context(), call{http.MethodGet, []string{coreAPI}, "", nil}, nil)
		if err == nil || !strings.Contains(err.Error(), "fix: check its clock") {
			t.Errorf("%s: %v", by, err)
		}
	}
}

// asksThroughProxy is set for the process that asks.
const asksThroughProxy = "WMCO_TEST_ASKS"

// TestNoProxyIsUsed runs another process with the variables of a proxy, because net/http reads them once. That process asks an API
// server first as other programs do, and then as the agent does.
func TestNoProxyIsUsed(t *testing.T) {
	if who := os.Getenv(asksThroughProxy); who != "" {
		askAs(t, who)
		return
	}
	for who, want := range map[string]bool{"another program": true, "the agent": false} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Bool
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				asked.Store(true)
				_ = c.Close()
			}
		}()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoProxyIsUsed$")
		proxy := "http://" + listener.Addr().String()
		cmd.Env = append(os.Environ(), asksThroughProxy+"="+who, "HTTPS_PROXY="+proxy, "HTTP_PROXY="+proxy, "https_proxy="+proxy, "http_proxy="+proxy, "NO_PROXY=", "no_proxy=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if asked.Load() != want {
			t.Errorf("%s used the proxy: %t", who, asked.Load())
		}
		_ = listener.Close()
	}
}

// askAs asks an API server that does not exist: names of this domain never do (RFC 2606).
func askAs(t *testing.T, who string) {
	t.Helper()
	own := []byte(certificate(t, userPrefix+nodeName))
	config := &rest.Config{Host: "https://api-int.example.invalid:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertData: own, KeyData: own}}
	l, err := newLink(config, Connection{Clock: newRealClock()})
	if err == nil && who != "the agent" {
		l.http, err = rest.HTTPClientFor(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.doRequest(t.Context(), call{http.MethodGet, []string{coreAPI}, "", nil}, nil); err == nil {
		t.Error("somebody answered")
	}
}
