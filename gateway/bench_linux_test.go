package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"wmco/gateway"
	"wmco/gateway/identity"
	"wmco/gateway/places"
	"wmco/gateway/registry"
)

// files is a folder in memory.
type files struct{ sync.Map }

func (f *files) ReadFile(name string) ([]byte, error) {
	if v, ok := f.Load(name); ok {
		return v.([]byte), nil
	}
	return nil, http.ErrMissingFile
}

func (f *files) WriteFile(name string, data []byte) error { f.Store(name, data); return nil }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// zeros is a layer of a size in bytes.
func zeros(size int64) io.Reader { return io.LimitReader(zero{}, size) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// processorTime is what this process has used since its start.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLayers pulls layers of 256 MiB, several at once, by TLS on loopback on both sides, and without the gateway. It reports the memory that the
// process takes from the system beyond its start, and seconds of processors for each GB, registry and client included.
func BenchmarkLayers(b *testing.B) {
	const size = 256 << 20
	d, err := digest.FromReader(zeros(size))
	if err != nil {
		b.Fatal(err)
	}
	source := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = io.Copy(w, zeros(size))
	}))
	defer source.Close()
	client, address := serveLoopback(b)
	token, host := login(b, client, address), strings.TrimPrefix(source.URL, "https://")
	path := "/v2/a/blobs/" + d.String()
	for _, way := range []struct {
		name, url string
		client    *http.Client
	}{
		{"direct", source.URL + path, source.Client()},
		{"gateway", "https://" + address + path + "?ns=" + host, client},
	} {
		for _, atOnce := range []int{1, 16} {
			b.Run(way.name+"/"+strconv.Itoa(atOnce), func(b *testing.B) {
				b.SetBytes(int64(atOnce) * size)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				used := processorTime(b)
				for b.Loop() {
					var all sync.WaitGroup
					for range atOnce {
						all.Go(func() { pullLayer(b, way.client, token, way.url) })
					}
					all.Wait()
				}
				used = processorTime(b) - used
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB")
				b.ReportMetric(used.Seconds()/(float64(b.N*atOnce)*size/1e9), "cpu-s/GB")
			})
		}
	}
}

// serveLoopback starts a gateway for all registries, and returns containerd's client and the address.
func serveLoopback(b *testing.B) (*http.Client, string) {
	b.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, insecure := registry.Options{}.Transports()
	log := slog.New(slog.DiscardHandler)
	h := gateway.New(gateway.Options{
		Address: listener.Addr().String(), Now: time.Now, Random: func(p []byte) { p[0] = 1 }, Log: log,
		Client: &registry.Client{Verified: insecure, Insecure: insecure, Now: time.Now},
	})
	h.SetTable(places.Table{Routed: []string{places.All}})
	f := &files{}
	if _, _, err := identity.EnsureCertificates(f, net.IPv4(127, 0, 0, 1), time.Now()); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	go func() {
		_ = gateway.Server{Handler: h, Certificates: f, Clock: systemClock{}, Log: log}.Run(ctx, listener)
	}()
	pool := x509.NewCertPool()
	ca, _ := f.ReadFile(identity.CA)
	pool.AppendCertsFromPEM(ca)
	own, _ := f.ReadFile(identity.Client)
	pair, err := tls.X509KeyPair(own, own)
	if err != nil {
		b.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}}}, listener.Addr().String()
}

// BenchmarkIdleConnections opens 10,000 connections that say nothing, and asks for a token beside them. It reports the memory that the process takes from
// the system beyond its start, the other ends of the connections included, and the seconds until the answer.
func BenchmarkIdleConnections(b *testing.B) {
	client, address := serveLoopback(b)
	login(b, client, address)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var waited time.Duration
	for b.Loop() {
		client.CloseIdleConnections()
		var idle []net.Conn
		for range 10_000 {
			c, err := (&net.Dialer{Timeout: time.Minute}).DialContext(b.Context(), "tcp", address)
			if err != nil {
				b.Fatalf("after %d connections: %v", len(idle), err)
			}
			idle = append(idle, c)
		}
		begin := time.Now()
		login(b, client, address)
		waited += time.Since(begin)
		for _, c := range idle {
			_ = c.Close()
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB")
	b.ReportMetric(waited.Seconds()/float64(b.N), "s/answer")
}

func login(b *testing.B, client *http.Client, address string) string {
	b.Helper()
	response, err := client.Get("https://" + address + "/token")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"token":"`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

func pullLayer(b *testing.B, client *http.Client, token, url string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		b.Errorf("%d after %d bytes: %v", response.StatusCode, n, err)
	}
}
