package applier_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier"
	"wmco/applier/hosttest"
	"wmco/applier/simulation"
	"wmco/render/bundle"
	"wmco/render/bundle/archive"
)

// key is that of the digests of secrets in these tests.
var key = bundle.Key("0123456789abcdef0123456789abcdef")

// node is a bundle that tests change: a small node with everything that a large one has.
type node struct {
	files     map[string]string // contents by path
	secrets   map[string]string
	programs  map[string]string
	exclusive []string
	services  []bundle.Service
	proxy     map[string]string
	secretVar string
	cas       []string
	cluster   string
	stage     bundle.Stage
	routes    []bundle.Route
	features  []bundle.Feature
	hostName  string
}

func newNode() node {
	return node{
		files: map[string]string{
			`C:\k\kubelet.conf`:                              "kind: KubeletConfiguration\n",
			`C:\k\containerd\containerd_conf.toml`:           "version = 4\n",
			`C:\k\containerd\registries\a.io\hosts.toml`:     "server = \"https://a.io\"\n",
			`C:\k\etc\kubernetes\manifests\.keep`:            "",
			`C:\k\containerd\registries\_default\hosts.toml`: "\n",
		},
		secrets:   map[string]string{`C:\k\bootstrap-kubeconfig`: "token: sesame-files\n"},
		programs:  map[string]string{`C:\k\kubelet.exe`: strings.Repeat("kubelet", 1000), `C:\k\containerd\containerd.exe`: strings.Repeat("containerd", 999), `C:\k\kube-log-runner.exe`: "runner"},
		exclusive: []string{`C:\k\containerd\registries`},
		services: []bundle.Service{
			service("containerd", []string{`C:\k\containerd\containerd.exe`, "--run-service"}, nil, `C:\k\containerd\containerd_conf.toml`, `C:\k\containerd\containerd.exe`),
			service("kubelet", []string{`C:\k\kube-log-runner.exe`, `C:\k\kubelet.exe`, "--config", `C:\k\kubelet.conf`}, []string{"containerd"}, `C:\k\kubelet.conf`, `C:\k\kubelet.exe`, `C:\k\kube-log-runner.exe`),
		},
		proxy: map[string]string{"NO_PROXY": ".svc"}, secretVar: "http://user:sesame-proxy@proxy:3128",
		cas: []string{"first CA", "second CA"}, cluster: "blue", stage: bundle.StageJoined,
		routes: []bundle.Route{{Destination: "169.254.169.254/32", Via: bundle.ViaDefault, Impact: bundle.ImpactNone}},
	}
}

func service(name string, argv, dependencies []string, reads ...string) bundle.Service {
	return bundle.Service{
		Name: name, Description: "OpenShift managed " + name, Start: bundle.StartAuto, Argv: argv, Dependencies: dependencies,
		Environment: "proxy", Reads: reads, Recovery: bundle.Recovery{RestartAfterSeconds: []int{10, 30}, ResetSeconds: 300},
		Probe:  bundle.Probe{Kind: bundle.ProbeHTTP, Target: "http://127.0.0.1/" + name, DeadlineSeconds: 60},
		Impact: bundle.ImpactRestart,
	}
}

// bundle is the node as render would make it.
func (n node) bundle(t testing.TB) bundle.Bundle {
	t.Helper()
	c := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: n.stage}
	for path, text := range n.files {
		impact := bundle.ImpactRestart
		if strings.Contains(path, "registries") {
			impact = bundle.ImpactNone
		}
		c.Files = append(c.Files, bundle.File{
			Path: path, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: impact, Content: bundle.Content{Data: []byte(text)},
		})
	}
	for path, text := range n.secrets {
		c.Files = append(c.Files, bundle.File{
			Path: path, Digest: key.Of([]byte(text)), Secret: true, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone,
			Content: bundle.Content{Data: []byte(text), Preview: []byte("masked")},
		})
	}
	for path, text := range n.programs {
		c.Payload = append(c.Payload, bundle.Payload{Path: path, Component: bundle.Base(path), Version: "v1", Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Impact: bundle.ImpactRestart})
	}
	c.Directories = []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}, {Path: `C:\k\containerd`, Access: bundle.AccessUsers}}
	for _, path := range n.exclusive {
		c.Directories = append(c.Directories, bundle.Directory{Path: path, Access: bundle.AccessAdmins, Exclusive: true})
	}
	env := bundle.Environment{Name: "proxy"}
	for name, text := range n.proxy {
		c.Variables = append(c.Variables, bundle.Variable{Name: name, Value: text, Impact: bundle.ImpactNone})
		env.Variables = append(env.Variables, bundle.Variable{Name: name, Value: text, Impact: bundle.ImpactRestart})
	}
	if n.secretVar != "" {
		content := bundle.Content{Data: []byte(n.secretVar), Preview: []byte("masked")}
		v := bundle.Variable{Name: "HTTP_PROXY", Digest: key.Of(content.Data), Impact: bundle.ImpactNone, Content: content}
		c.Variables = append(c.Variables, v)
		env.Variables = append(env.Variables, v)
	}
	slices.SortFunc(env.Variables, func(a, b bundle.Variable) int { return strings.Compare(a.Name, b.Name) })
	c.Environments = []bundle.Environment{env}
	c.Services = slices.Clone(n.services)
	for _, text := range n.cas {
		c.TrustedCAs = append(c.TrustedCAs, bundle.TrustedCA{Digest: bundle.Of([]byte(text)), Subject: "CN=" + text, NotAfter: "2045-01-01T00:00:00Z", Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte(text)}})
	}
	c.Routes, c.Features = n.routes, n.features
	c.State = []bundle.State{{Path: `C:\k\kubeconfig`, File: true, Cluster: n.cluster}, {Path: `C:\var\lib\kubelet\pki`, Cluster: n.cluster}}
	own := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: n.stage}
	if n.hostName != "" {
		own.HostName = bundle.HostName{Name: n.hostName, Impact: bundle.ImpactReboot}
	}
	b := bundle.Bundle{Cluster: c, Node: own}
	b.Cluster.Normalize()
	b.Node.Normalize()
	return b
}

// programs are the contents of the executables, by path.
type programs map[string]string

// stored and sources remember what was compressed: the compressor's tables cost more than these small contents.
var stored, sources sync.Map //nolint:gochecknoglobals // caches of pure functions

func compress(text string) []byte {
	if data, ok := stored.Load(text); ok {
		return data.([]byte)
	}
	data := archive.Compress([]byte(text))
	stored.Store(text, data)
	return data
}

// Contents implements archive.Source.
func (p programs) Contents() []archive.Content {
	var list []archive.Content
	for _, path := range slices.Sorted(maps.Keys(p)) {
		d := bundle.Of([]byte(p[path]))
		list = append(list, archive.Content{
			Digest: d, SHA256: strings.TrimPrefix(string(d), "sha256:"), Size: int64(len(p[path])), Stored: int64(len(compress(p[path]))),
		})
	}
	return list
}

// Open implements archive.Source.
func (p programs) Open(sum string) (io.ReadCloser, error) {
	for _, text := range p {
		if string(bundle.Of([]byte(text))) == "sha256:"+sum {
			return io.NopCloser(bytes.NewReader(compress(text))), nil
		}
	}
	return nil, fs.ErrNotExist
}

// archive is the node as it travels to a machine that lacks contents.
func (n node) archive(t testing.TB, missing []applier.Missing) *archive.Reader {
	t.Helper()
	b := n.bundle(t)
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	source, ok := sources.Load(m.Digest)
	if !ok {
		if source, err = archive.FromBundle(b); err != nil {
			t.Fatal(err)
		}
		sources.Store(m.Digest, source)
	}
	lacks := map[bundle.Digest][]int{}
	for _, x := range missing {
		lacks[x.Digest] = x.Parts
	}
	var stream bytes.Buffer
	request := archive.Request{Manifest: m, Source: archive.Join(source.(archive.Source), programs(n.programs)), Missing: lacks}
	if err := archive.Send(t.Context(), &stream, request); err != nil {
		t.Fatal(err)
	}
	r, err := archive.NewReader(&stream)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// machine is a machine in memory with an engine.
type machine struct {
	*hosttest.Memory
	clock  *hosttest.Clock
	events []applier.Event
}

func newMachine() *machine {
	clock := hosttest.NewClock(hosttest.Epoch())
	return &machine{Memory: hosttest.NewMemory(hosttest.Facts(), clock), clock: clock}
}

// copy is another machine that is the same.
func (m *machine) copy() *machine {
	clock := hosttest.NewClock(m.clock.Now())
	return &machine{Memory: m.Copy(clock), clock: clock}
}

func (m *machine) engine() *applier.Engine {
	return &applier.Engine{Host: m.Memory, Clock: m.clock, Program: "test", Owner: "the test", Emit: func(e applier.Event) { m.events = append(m.events, e) }}
}

// observe asks the machine about the node.
func (m *machine) observe(t testing.TB, n node) applier.Observation {
	t.Helper()
	o, err := m.engine().Observe(t.Context(), n.archive(t, nil), false)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// apply does what wmco does: it asks what is missing and sends that.
func (m *machine) apply(t testing.TB, n node, o applier.Options) (applier.Outcome, error) {
	t.Helper()
	m.events = nil
	seen, err := m.engine().Observe(t.Context(), n.archive(t, nil), false)
	if err != nil {
		return applier.Outcome{}, err
	}
	return m.engine().Apply(t.Context(), n.archive(t, seen.Missing), o)
}

func (m *machine) mustApply(t testing.TB, n node) applier.Outcome {
	t.Helper()
	o, err := m.apply(t, n, applier.Options{})
	if err != nil {
		t.Fatalf("%v: %+v", err, m.events)
	}
	return o
}

func (m *machine) repair(ctx context.Context) (applier.Outcome, error) {
	m.events = nil
	return m.engine().Repair(ctx, applier.Options{})
}

// place is what the machine is, without the applier's own records.
func (m *machine) place() simulation.Snapshot {
	s := m.Snapshot()
	for path := range s.Files {
		if strings.HasPrefix(bundle.FoldPath(path), bundle.FoldPath(`C:\ProgramData`)) {
			delete(s.Files, path)
		}
	}
	return s
}

// differs compares two machines, whatever the times at which they booted.
func differs(want, got simulation.Snapshot) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}
