package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/internal/test/testenv"
)

// crowded is an API server that counts requests for Nodes. It answers to a list and holds every watch until it is interrupted.
type crowded struct {
	mu       sync.Mutex
	asked    []time.Time
	watching int
	// away reports whether it answers to nothing; interrupted ends all watches.
	away        bool
	interrupted chan struct{}
}

func newCrowded() *crowded { return &crowded{interrupted: make(chan struct{})} }

func (c *crowded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, time.Now())
	away, interrupted := c.away, c.interrupted
	c.mu.Unlock()
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="), "&")
	meta := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: node, ResourceVersion: "1"}}
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity) // as an older API server: a list follows
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		w.(http.Flusher).Flush()
		c.count(1)
		defer c.count(-1)
		select {
		case <-interrupted:
		case <-r.Context().Done():
		}
	default:
		_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{meta},
		})
	}
}

func (c *crowded) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching += n
}

func (c *crowded) watchers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watching
}

// interrupt ends all watches, as an API server does that is restarted.
func (c *crowded) interrupt(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.interrupted)
	c.interrupted, c.away, c.asked = make(chan struct{}), away, nil
}

// back lets it answer again.
func (c *crowded) back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.asked = false, nil
}

// busiest is the highest number of requests in one second.
func (c *crowded) busiest() (most, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.asked {
		end, _ := slices.BinarySearchFunc(c.asked, c.asked[i].Add(time.Second), time.Time.Compare)
		most = max(most, end-i)
	}
	return most, len(c.asked)
}

// follow starts agents that follow their Nodes.
func follow(t testing.TB, url string, agents int) {
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for i := range agents {
		name := fmt.Sprint("win-", i)
		host := &windows{files: map[string]string{hostCertificate: certificate(t, userPrefix+name), hostKubeconfig: strings.ReplaceAll(toNowhere(), "https://127.0.0.1:1", url)}}
		c := NewAPIServer(Connection{Kubeconfig: hostKubeconfig, ReadFile: host.read, Log: slog.New(slog.DiscardHandler), Clock: newRealClock(), Spread: func(d time.Duration) time.Duration { return rand.N(d) }})
		all.Go(func() { c.Watch(ctx, func(Node) {}) })
	}
}

// BenchmarkReconnect measures the requests per second of a thousand agents that lose the API server at once, for a moment or for
// half a minute, and how long it takes until all of them follow their Nodes again.
func BenchmarkReconnect(b *testing.B) {
	const agents = 1000
	for name, away := range map[string]time.Duration{"a moment": 0, "30s": 30 * time.Second} {
		b.Run(name, func(b *testing.B) {
			c := newCrowded()
			s := httptest.NewTLSServer(c)
			b.Cleanup(s.Close)
			follow(b, s.URL, agents)
			await(b, "all agents", func() bool { return c.watchers() == agents })
			for b.Loop() {
				c.interrupt(away > 0)
				if away > 0 {
					time.Sleep(away)
					c.back()
				}
				begun := time.Now()
				await(b, "none", func() bool { return c.watchers() < agents })
				await(b, "all agents again", func() bool { return c.watchers() == agents })
				most, all := c.busiest()
				b.ReportMetric(float64(most), "requests/busiest-second")
				b.ReportMetric(float64(all)/agents, "requests/agent")
				b.ReportMetric(time.Since(begun).Seconds(), "s-until-all-follow")
			}
		})
	}
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	if err := testenv.Eventually(t.Context(), what, done); err != nil {
		t.Fatal(err)
	}
}
