package agent

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// fakeNode is the name of the Node in the certificate.
const fakeNode = "win-a"

// fakeCluster behaves as the API server does towards one node. TestClusters holds both to one contract.
type fakeCluster struct {
	Certificates // none: an agent without Options.CloudCertificate asks for none

	parts map[string][]byte
	// access is the kubeconfig for another process.
	access string
	// away is the error of every request, silent that of reading the Node.
	away, silent error
	reports      []Status
	events       []Event
	// ready is the time of the kubelet's last sign of life.
	ready func() time.Time
	node  Node
	told  func(Node)
}

func (*fakeCluster) NodeName() (string, error) { return fakeNode, nil }

func (c *fakeCluster) Watch(ctx context.Context, changed func(Node)) {
	c.told = changed
	changed(c.node)
	<-ctx.Done()
}

func (c *fakeCluster) Part(_ context.Context, _, name string) ([]byte, error) {
	if c.away != nil {
		return nil, c.away
	}
	data, ok := c.parts[name]
	if !ok {
		return nil, ErrNotPublished
	}
	return data, nil
}

func (c *fakeCluster) Report(_ context.Context, s Status) error {
	if c.away == nil {
		c.reports, c.node.Report = append(c.reports, s), s.Text
	}
	return c.away
}

func (c *fakeCluster) Heartbeat(context.Context) (time.Time, error) {
	if err := errors.Join(c.away, c.silent); err != nil {
		return time.Time{}, err
	}
	at := c.ready()
	return at, c.silent
}

func (c *fakeCluster) OwnKubeconfig() ([]byte, error) {
	return []byte(cmp.Or(c.access, "a kubeconfig")), nil
}

func (c *fakeCluster) OwnNode(context.Context) (Node, error) {
	if c.node.UID == "" && c.away == nil {
		return Node{}, ErrNoNode
	}
	return c.node, c.away
}

func (c *fakeCluster) Event(_ context.Context, e Event) error {
	if c.away == nil {
		c.events = append(c.events, e)
	}
	return c.away
}

// patient is a clock on which short waits take no time, and long ones end when the short ones have added up to them.
type patient struct {
	*hostsim.Clock

	// at is called at each wait.
	at func(time.Duration)

	mu   sync.Mutex
	long []alarm
	rang int
}

type alarm struct {
	at   time.Duration
	ring chan time.Time
}

// After implements applier.Clock.
func (p *patient) After(d time.Duration) <-chan time.Time {
	if p.at != nil {
		p.at(d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d >= time.Minute/2 {
		ring := make(chan time.Time, 1)
		p.long = append(p.long, alarm{p.SinceBoot() + d, ring})
		return ring
	}
	if p.rang > 0 { // whoever an alarm is for comes first: in a bubble of synctest, a sleep ends when all others wait
		p.rang--
		time.Sleep(5 * time.Millisecond)
	}
	fired := p.Clock.After(d)
	p.long = slices.DeleteFunc(p.long, func(a alarm) bool {
		if p.SinceBoot() < a.at {
			return false
		}
		a.ring <- p.Now()
		p.rang = 50
		return true
	})
	return fired
}

// world is a host that has joined, its agent and its cluster.
type world struct {
	*Agent
	t       *testing.T
	cluster *fakeCluster
	clock   *hostsim.Clock
	waits   *patient
	host    *hostsim.Memory
	bundle  bundletest.Node
	changed chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, bundletest.New())
}

// newWorldWith is newWorld for a host that has joined with a bundle.
func newWorldWith(t *testing.T, b bundletest.Node) *world {
	t.Helper()
	clock := hostsim.NewClock(hostsim.Epoch())
	w := &world{t: t, clock: clock, host: hostsim.NewMemory(hostsim.Facts(), clock), bundle: b, changed: make(chan struct{}, 1)}
	w.waits = &patient{Clock: clock}
	w.cluster = &fakeCluster{parts: map[string][]byte{}, ready: clock.Now}
	in, err := archive.NewReader(strings.NewReader(string(w.bundle.Archive(t, nil))))
	if err != nil {
		t.Fatal(err)
	}
	observed, err := w.engine().Observe(t.Context(), in.Manifest, in.Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	if in, err = archive.NewReader(strings.NewReader(string(w.bundle.Archive(t, observed.Missing)))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine().Apply(t.Context(), in.Manifest, in, applier.Options{}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

func (w *world) engine() *applier.Engine {
	return &applier.Engine{Host: w.host, Clock: w.waits, Permits: bundletest.Permit, Program: "test", Owner: "the test", Self: bundle.AgentService}
}

// restart starts another process of the agent.
func (w *world) restart() {
	w.Agent = &Agent{
		Engine: w.engine(), Cluster: w.cluster, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Options: Options{Interval: 5 * time.Minute, Full: 6 * time.Hour},
	}
	w.setDefaults()
	w.setNode(w.cluster.node, w.changed)
}

// publish publishes the bundle as it is now.
func (w *world) publish(allowed bundle.Impact) published.Desired {
	w.t.Helper()
	b := w.bundle.Bundle(w.t)
	c, err := published.Pack(b.Cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := published.Pack(b.Node)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range append(c.Secrets, n.Secrets...) {
		w.cluster.parts[s.Name] = s.Data
	}
	digest, err := b.Digest()
	if err != nil {
		w.t.Fatal(err)
	}
	d := published.Desired{Bundle: digest, MaxImpact: allowed, Namespace: "operator", Cluster: c.Layer, Node: n.Layer}
	text, err := d.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.cluster.node.Desired = text
	return d
}

// publishUrgent marks the published state as urgent.
func (w *world) publishUrgent() {
	w.t.Helper()
	d, err := published.DecodeDesired(w.cluster.node.Desired)
	if err != nil {
		w.t.Fatal(err)
	}
	d.Urgent = true
	if w.cluster.node.Desired, err = d.Encode(); err != nil {
		w.t.Fatal(err)
	}
}

// turn lets the agent act once, with what the watch has seen.
func (w *world) turn() published.Report {
	w.t.Helper()
	w.setNode(w.cluster.node, w.changed)
	if err := w.runDueWork(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.setNode(w.cluster.node, w.changed)
	return w.lastReport()
}

// lastReport returns the last report.
func (w *world) lastReport() published.Report {
	w.t.Helper()
	if len(w.cluster.reports) == 0 {
		return published.Report{}
	}
	r, err := published.DecodeReport(w.cluster.reports[len(w.cluster.reports)-1].Text)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) file(path string) string {
	text, _ := w.host.Contents(path)
	return text
}

// leaveRoom leaves this much room on the disk of the host, in bytes; 0 is no limit.
func (w *world) leaveRoom(room int64) {
	w.t.Helper()
	limit := func(size int64) {
		if err := w.host.Edit(w.t.Context(), func(s *simulation.State) { s.Script.DiskBytes = size }); err != nil {
			w.t.Fatal(err)
		}
	}
	limit(0)
	if room == 0 {
		return
	}
	const most = 1 << 50
	limit(most)
	free, err := w.host.Free(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	limit(most - free + room)
}

// starts is how often a service was started since the log was cleared.
func (w *world) starts(service string) int {
	n := 0
	for _, op := range w.host.Log() {
		if op.Verb == simulation.VerbStart && op.Target == service {
			n++
		}
	}
	return n
}

// longAgo is a sign of life from before every change.
var longAgo = hostsim.Epoch().Add(-time.Minute)

const (
	exporter     = `C:\k\exporter.exe`
	exporterConf = `C:\k\exporter.yaml`
)

// withExporter lets the host have a service that has nothing to do with the link to the cluster.
func (w *world) withExporter() {
	w.t.Helper()
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Files[exporterConf], n.Programs[exporter] = "a\n", "exporter"
		n.Services = append(n.Services, bundletest.Service("windows_exporter", []string{exporter}, nil, exporterConf, exporter))
	})
	w.host.Place(exporter, bundle.AccessUsers, "exporter")
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied {
		w.t.Fatalf("%s: %s", got.State, got.Message)
	}
	w.cluster.events, w.cluster.reports = nil, nil
}

// fresh is a sign of life of this moment.
func (w *world) fresh() time.Time { return w.clock.Now() }

// boot boots the host.
func (w *world) boot() {
	w.t.Helper()
	if err := w.host.Restart(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.clock.Boot()
}
