package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

// quiet is an API server in memory, for time that is not real. It ends a watch when the client wants it to, and tells it of every
// write, as the real one does.
type quiet struct {
	desired string
	parts   map[string][]byte

	mu       sync.Mutex
	report   string
	version  int
	changed  chan struct{}
	requests map[string]int
}

// RoundTrip implements http.RoundTripper.
func (q *quiet) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	kind := r.Method + " " + r.URL.Path
	if query.Get("watch") != "" {
		kind = "watch"
	}
	q.mu.Lock()
	q.requests[kind]++
	q.mu.Unlock()
	switch {
	case kind == "watch":
		return answer(q.stream(r.Context(), query)), nil
	case r.Method == http.MethodPatch:
		return answer(io.NopCloser(strings.NewReader("{}"))), q.write(r.Body)
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		node, _ := q.node()
		list.ResourceVersion, list.Items = node.ResourceVersion, []metav1.PartialObjectMetadata{node}
		text, err := json.Marshal(list)
		return answer(io.NopCloser(bytes.NewReader(text))), err
	}
	text, err := json.Marshal(corev1.Secret{Data: map[string][]byte{published.SecretKey: q.parts[path.Base(r.URL.Path)]}})
	return answer(io.NopCloser(bytes.NewReader(text))), err
}

func answer(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// node returns the Node, and a channel that is closed when it is written.
func (q *quiet) node() (metav1.PartialObjectMetadata, chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "win-a", ResourceVersion: strconv.Itoa(q.version),
			Annotations: map[string]string{published.DesiredAnnotation: q.desired, published.ReportAnnotation: q.report},
		},
	}, q.changed
}

func (q *quiet) write(body io.Reader) error {
	var patch metav1.PartialObjectMetadata
	if err := json.NewDecoder(body).Decode(&patch); err != nil {
		return err
	}
	q.put(patch.Annotations[published.ReportAnnotation])
	return nil
}

// put makes a report that of the Node, and tells the watches.
func (q *quiet) put(report string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.report = report
	q.version++
	close(q.changed)
	q.changed = make(chan struct{})
}

// stream is a watch until its time limit.
func (q *quiet) stream(ctx context.Context, query url.Values) io.ReadCloser {
	out, in := io.Pipe()
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	limit := time.After(time.Duration(seconds) * time.Second)
	send := func(kind string, node metav1.PartialObjectMetadata) error {
		return json.NewEncoder(in).Encode(map[string]any{"type": kind, "object": node})
	}
	go func() {
		node, changed := q.node()
		if query.Get("sendInitialEvents") == "true" {
			_ = send("ADDED", node)
			end := node
			end.ObjectMeta = metav1.ObjectMeta{ResourceVersion: node.ResourceVersion, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
			_ = send("BOOKMARK", end)
		}
		for {
			select {
			case <-ctx.Done():
				_ = in.CloseWithError(ctx.Err())
				return
			case <-limit:
				_ = in.Close()
				return
			case <-changed:
				if node, changed = q.node(); send("MODIFIED", node) != nil {
					return
				}
			}
		}
	}()
	return out
}

// rested is what an agent did in a day in which nothing happened.
type rested struct {
	requests map[string]int
	heap     uint64
}

// rest lets an agent run for a day without any change, after an hour to begin with.
func rest24(t *testing.T) rested {
	t.Helper()
	var result rested
	atRest(t, func(q *quiet, before uint64) {
		time.Sleep(24 * time.Hour)
		result = rested{q.requests, heap() - before}
	})
	return result
}

// atRest calls do when an agent has run for an hour, and ends it then. The heap is that of before the agent.
func atRest(t *testing.T, do func(q *quiet, heap uint64)) {
	t.Helper()
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	q := &quiet{desired: w.cluster.node.Desired, parts: w.cluster.parts, changed: make(chan struct{}), requests: map[string]int{}, version: 1}
	before := heap()
	clock := realClock{time.Now()}
	a := &Agent{
		Engine:  &applier.Engine{Host: w.host, Clock: clock, Permits: bundletest.Permit, Program: "test", Owner: "the test", Self: bundle.AgentService},
		Cluster: quietServer(t, q, clock), Log: slog.New(slog.DiscardHandler),
		Options: Options{Interval: 5 * time.Minute, Full: 6 * time.Hour},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	time.Sleep(time.Hour)
	if r, err := published.DecodeReport(q.report); err != nil || r.State != published.StateApplied {
		t.Fatalf("%s: %s, %v", r.State, r.Message, err)
	}
	q.mu.Lock()
	clear(q.requests)
	q.mu.Unlock()
	do(q, before)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// quietServer is the client that agents have, over the API server in memory.
func quietServer(t *testing.T, q *quiet, clock applier.Clock) *APIServer {
	t.Helper()
	client := &http.Client{Transport: q}
	config := &rest.Config{Host: "https://api-int.example.com:6443"}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		t.Fatal(err)
	}
	return &APIServer{
		connection: Connection{Log: slog.New(slog.DiscardHandler), Clock: clock}, readAgain: math.MaxInt64,
		link: &link{config: config, node: "win-a", http: client, base: base, nodes: nodes, clock: clock},
	}
}

// TestAnAgentAtRestAsksForLittle: a heartbeat every ten minutes, and a watch that client-go begins again after five to ten. Nothing is
// listed again.
func TestAnAgentAtRestAsksForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := rest24(t).requests
		const heartbeats = "PATCH /api/v1/nodes/win-a/status"
		if n := got[heartbeats]; n < 143 || n > 145 {
			t.Errorf("%d reports in a day", n)
		}
		if n := got["watch"]; n < 24*60/10-1 || n > 24*60/5+1 {
			t.Errorf("%d watches in a day", n)
		}
		if len(got) != 2 {
			t.Errorf("other requests: %v", got)
		}
	})
}

// BenchmarkAgentAtRest measures what an agent costs when nothing changes. Time is not real; the heap is that of the agent and its client,
// and of the contents that a day of comparisons leaves.
func BenchmarkAgentAtRest(b *testing.B) {
	var got rested
	for b.Loop() {
		// Only a test has time that is not real.
		ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
			Name: "AtRest", F: func(t *testing.T) { synctest.Test(t, func(t *testing.T) { got = rest24(t) }) },
		}})
		if !ok {
			b.Fatal("the agent does not rest")
		}
	}
	total := 0
	for _, n := range got.requests {
		total += n
	}
	b.ReportMetric(float64(total)/24, "requests/h")
	b.ReportMetric(float64(got.heap)/1024, "heap-KiB")
}
