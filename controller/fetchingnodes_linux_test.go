package controller

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/agent/executables"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/gateway/registry"
	"wmco/internal/test/simnode/light"
	"wmco/payload/fetch"
	"wmco/payload/sources"
)

// fetchingNodes are reporters that fetch executables as node agents do: with the fetcher of the agents, by the list of the published bundle, from the
// registries that it names, each over connections of its own. What they have fetched is verified and not kept.
type fetchingNodes struct {
	*reporters
	nodes map[string]*fetchingNode

	mu sync.Mutex
	// active is how many nodes fetch now, most how many have at once.
	active, most int
	// received are the bytes of answers by HOST:PORT of a registry.
	received map[string]int64
}

// fetchingNode is one of them.
type fetchingNode struct {
	*executables.Fetcher
	all  *fetchingNodes
	name string
	// of is the bundle that list is from.
	of   bundle.Digest
	list []byte
	// begun and done are when the first request was sent, and when all executables were there.
	begun, done time.Time
}

// startFetching has reporters fetch, until the context ends. roots are the CAs that the nodes trust.
func startFetching(ctx context.Context, r *reporters, roots *x509.CertPool, running *sync.WaitGroup) *fetchingNodes {
	all := &fetchingNodes{reporters: r, nodes: map[string]*fetchingNode{}, received: map[string]int64{}}
	for name := range r.facts {
		all.nodes[name] = all.newNode(name, roots)
	}
	r.progress = func(node string) published.FetchProgress { return all.nodes[node].Progress() }
	for _, n := range all.nodes {
		running.Go(func() { n.Run(ctx) })
	}
	return all
}

// heartbeatPause is the time between two reports of a node that has nothing new to report, as of agents.
const heartbeatPause = 10 * time.Minute

// beat has all nodes report that they live, until the context ends.
func (a *fetchingNodes) beat(ctx context.Context) {
	beats := time.NewTicker(heartbeatPause / time.Duration(len(a.nodes)))
	defer beats.Stop()
	for {
		for name := range a.nodes {
			select {
			case <-ctx.Done():
				return
			case <-beats.C:
				a.due.Add(name)
			}
		}
	}
}

func (a *fetchingNodes) newNode(name string, roots *x509.CertPool) *fetchingNode {
	n := &fetchingNode{all: a, name: name}
	verified, insecure := registry.Options{Roots: roots}.Transports()
	single := &fetch.Single{Client: &registry.Client{Verified: counting{verified, a}, Insecure: counting{insecure, a}, Now: time.Now}}
	n.Fetcher = &executables.Fetcher{
		Registry: watched{single, n}, List: n.readList, Stage: new(light.Executables).Stage, Clock: newHostClock(), Log: slog.New(slog.DiscardHandler),
		Changed: n.reportProgress, Warn: func(_ context.Context, message string) { a.t.Errorf("%s: %s", name, message) },
		Jitter: func(d time.Duration) time.Duration { return d + rand.N(d/5+1) }, // as wmco-node run
	}
	return n
}

// see has it reported what a Node is told, and fetched what it may.
func (a *fetchingNodes) see(node *metav1.PartialObjectMetadata) {
	a.reporters.see(node)
	if n, ok := a.nodes[node.Name]; ok {
		n.PermitPayload(bundle.Digest(node.Annotations[published.FetchAnnotation]))
	}
}

// readList returns the list of the newest bundle, which is read once.
func (n *fetchingNode) readList(ctx context.Context) ([]byte, error) {
	d := n.all.desiredBundle(n.name)
	if d.Bundle == n.of {
		return n.list, nil
	}
	c, err := n.all.clientOf(n.name)
	if err != nil {
		return nil, err
	}
	var layers []bundle.Layer
	for _, l := range []published.Layer{d.Cluster, d.Node} {
		var parts [][]byte
		for _, name := range l.Names() {
			secret, err := c.Secrets(d.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			parts = append(parts, secret.Data[published.SecretKey])
		}
		opened, err := l.Open(parts)
		if err != nil {
			return nil, err
		}
		layers = append(layers, opened)
	}
	n.list = nil
	for _, f := range (bundle.Bundle{Cluster: layers[0], Node: layers[1]}).Files() {
		if f.Path == sources.File {
			n.list = f.Content.Data
		}
	}
	n.of = d.Bundle
	return n.list, nil
}

// reportProgress has progress reported, and counts the node no longer when it has all.
func (n *fetchingNode) reportProgress() {
	if n.Progress().Done {
		n.all.mu.Lock()
		if n.done.IsZero() && !n.begun.IsZero() {
			n.done = time.Now()
			n.all.active--
		}
		n.all.mu.Unlock()
	}
	n.all.due.Add(n.name)
}

// watched counts a node from its first request.
type watched struct {
	executables.Registry
	node *fetchingNode
}

// FetchStored implements executables.Registry.
func (w watched) FetchStored(ctx context.Context, l sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	a := w.node.all
	a.mu.Lock()
	if w.node.begun.IsZero() {
		w.node.begun = time.Now()
		a.active++
		a.most = max(a.most, a.active)
	}
	a.mu.Unlock()
	return w.Registry.FetchStored(ctx, l, x, report) //nolint:wrapcheck // it is that of the registry
}

// counting counts the bytes of answers.
type counting struct {
	http.RoundTripper
	all *fetchingNodes
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = &countedBody{ReadCloser: response.Body, add: func(n int) {
			c.all.mu.Lock()
			c.all.received[r.URL.Host] += int64(n)
			c.all.mu.Unlock()
		}}
	}
	return response, err //nolint:wrapcheck // it is that of the transport
}

// countedBody adds what it has counted when it is closed.
type countedBody struct {
	io.ReadCloser
	n   int
	add func(n int)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += n
	return n, err //nolint:wrapcheck // io.EOF is compared
}

func (b *countedBody) Close() error {
	b.add(b.n)
	b.n = 0
	return b.ReadCloser.Close() //nolint:wrapcheck // it is not looked at
}

// durations returns how long the fastest and the slowest node have fetched. One that has not finished is an error.
func (a *fetchingNodes) durations() (shortest, longest time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, n := range a.nodes {
		if n.done.IsZero() {
			return 0, 0, errors.New(name + " has fetched nothing")
		}
		took := n.done.Sub(n.begun)
		if shortest == 0 || took < shortest {
			shortest = took
		}
		longest = max(longest, took)
	}
	return shortest, longest, nil
}

// receivedFrom returns the bytes of answers of a registry.
func (a *fetchingNodes) receivedFrom(address string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.received[address]
}

// mostAtOnce returns how many nodes have fetched at the same time.
func (a *fetchingNodes) mostAtOnce() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}

// hostClock is that of a host that has booted just now.
type hostClock struct{ booted time.Time }

func newHostClock() hostClock { return hostClock{time.Now()} }

func (c hostClock) SinceBoot() time.Duration             { return time.Since(c.booted) }
func (hostClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
