// Package bundletest has bundles for tests of the applier and of programs that contain it.
package bundletest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/layout"
)

// key is the key of the digests of secrets in tests.
func key() bundle.Key { return bundle.Key("0123456789abcdef0123456789abcdef") }

// Network is the HNS network that programs of a node make.
const Network = layout.OverlayNetwork

// Permit accepts every bundle (applier.Engine.Permits): tests of the engine have services of their own.
func Permit(bundle.Bundle) error { return nil }

// Node is a small bundle with every kind of entry, in a form that tests can change.
type Node struct {
	Endpoints []bundle.Endpoint
	Files     map[string]string // contents by path
	Secrets   map[string]string
	Programs  map[string]string
	Exclusive []string
	// Empty are folders for administrators in which the bundle has nothing.
	Empty       []string
	Services    []bundle.Service
	Proxy       map[string]string
	SecretProxy string
	CAs         []string
	Cluster     string
	Stage       bundle.Stage
	Routes      []bundle.Route
	Features    []bundle.Feature
	HostName    string
	Firewall    []bundle.FirewallRule
	// Keys are authorized keys, "ALGORITHM BASE64".
	Keys []string
	// NodeName is the name in the node layer.
	NodeName string
	// Impacts are those of files, by path, where they are not what Bundle gives them.
	Impacts map[string]bundle.Impact
}

// New returns the node with which tests start.
func New() Node {
	return Node{
		Files: map[string]string{
			`C:\k\kubelet.conf`:                              "kind: KubeletConfiguration\n",
			`C:\k\containerd\containerd_conf.toml`:           "version = 4\n",
			`C:\k\containerd\registries\a.io\hosts.toml`:     "server = \"https://a.io\"\n",
			`C:\k\etc\kubernetes\manifests\.keep`:            "",
			`C:\k\containerd\registries\_default\hosts.toml`: "\n",
		},
		Secrets: map[string]string{`C:\k\bootstrap-kubeconfig`: "token: sesame-files\n"},
		Programs: map[string]string{
			`C:\k\kubelet.exe`:               strings.Repeat("kubelet", 1000),
			`C:\k\containerd\containerd.exe`: strings.Repeat("containerd", 999), `C:\k\kube-log-runner.exe`: "runner",
		},
		Exclusive: []string{`C:\k\containerd\registries`},
		Services: []bundle.Service{
			Service(
				"containerd", []string{`C:\k\containerd\containerd.exe`, "--run-service"}, nil,
				`C:\k\containerd\containerd_conf.toml`, `C:\k\containerd\containerd.exe`,
			),
			Service(
				"kubelet", []string{`C:\k\kube-log-runner.exe`, `C:\k\kubelet.exe`, "--config", `C:\k\kubelet.conf`},
				[]string{"containerd"}, `C:\k\kubelet.conf`, `C:\k\kubelet.exe`, `C:\k\kube-log-runner.exe`,
			),
		},
		Proxy: map[string]string{"NO_PROXY": ".svc"}, SecretProxy: "http://user:sesame-proxy@proxy:3128",
		CAs: []string{"first CA", "second CA"}, Cluster: "blue", Stage: bundle.StageJoined,
		Routes: []bundle.Route{{Destination: "169.254.169.254/32", Via: bundle.ViaDefault, Impact: bundle.ImpactNone}},
	}
}

// Service returns a service that reads files and programs.
func Service(name string, argv, dependencies []string, reads ...string) bundle.Service {
	return bundle.Service{
		Name: name, Description: "OpenShift managed " + name, Start: bundle.StartAuto, Argv: argv, Dependencies: dependencies,
		Environment: "proxy", Reads: reads, Recovery: bundle.Recovery{RestartAfterSeconds: []int{10, 30}, ResetSeconds: 300},
		Probe:  bundle.Probe{Kind: bundle.ProbeHTTP, Target: "http://127.0.0.1/" + name, DeadlineSeconds: 60},
		Impact: bundle.ImpactRestart,
	}
}

// file is a file without secrets.
func (n Node) file(path, text string) bundle.File {
	impact, access := bundle.ImpactRestart, bundle.AccessUsers
	if strings.Contains(path, "registries") {
		impact = bundle.ImpactNone
	}
	if given, ok := n.Impacts[path]; ok {
		impact = given
	}
	if path == bundle.SigningKeysFile {
		access, impact = bundle.AccessAdmins, bundle.ImpactNone
	}
	return bundle.File{
		Path: path, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: access, Impact: impact,
		Content: bundle.Content{Data: []byte(text)},
	}
}

// Bundle returns the bundle of the node as render would make it.
func (n Node) Bundle(t testing.TB) bundle.Bundle {
	t.Helper()
	c := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: n.Stage}
	for path, text := range n.Files {
		c.Files = append(c.Files, n.file(path, text))
	}
	for path, text := range n.Secrets {
		c.Files = append(c.Files, bundle.File{
			Path: path, Digest: key().Of([]byte(text)), Secret: true, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone,
			Content: bundle.Content{Data: []byte(text), Preview: []byte("masked")},
		})
	}
	for path, text := range n.Programs {
		c.Payload = append(c.Payload, bundle.Payload{
			Path: path, Component: bundle.Base(path), Version: "v1", Digest: bundle.Of([]byte(text)),
			Size: int64(len(text)), Impact: bundle.ImpactRestart,
		})
	}
	c.Directories = []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}, {Path: `C:\k\containerd`, Access: bundle.AccessUsers}}
	for _, path := range n.Exclusive {
		c.Directories = append(c.Directories, bundle.Directory{Path: path, Access: bundle.AccessAdmins, Exclusive: true})
	}
	for _, path := range n.Empty {
		c.Directories = append(c.Directories, bundle.Directory{Path: path, Access: bundle.AccessAdmins})
	}
	env := bundle.Environment{Name: "proxy"}
	for name, text := range n.Proxy {
		c.Variables = append(c.Variables, bundle.Variable{Name: name, Value: text, Impact: bundle.ImpactNone})
		env.Variables = append(env.Variables, bundle.Variable{Name: name, Value: text, Impact: bundle.ImpactRestart})
	}
	if n.SecretProxy != "" {
		content := bundle.Content{Data: []byte(n.SecretProxy), Preview: []byte("masked")}
		v := bundle.Variable{Name: "HTTP_PROXY", Digest: key().Of(content.Data), Impact: bundle.ImpactNone, Content: content}
		c.Variables = append(c.Variables, v)
		env.Variables = append(env.Variables, v)
	}
	slices.SortFunc(env.Variables, func(a, b bundle.Variable) int { return strings.Compare(a.Name, b.Name) })
	c.Environments = []bundle.Environment{env}
	c.Services = slices.Clone(n.Services)
	for _, text := range n.CAs {
		c.TrustedCAs = append(c.TrustedCAs, bundle.TrustedCA{
			Digest: bundle.Of([]byte(text)), Subject: "CN=" + strings.ToValidUTF8(text, "?"),
			NotAfter: "2045-01-01T00:00:00Z", Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte(text)},
		})
	}
	c.Endpoints, c.Routes, c.Features, c.Firewall = n.Endpoints, n.Routes, n.Features, n.Firewall
	c.State = []bundle.State{{Path: `C:\k\kubeconfig`, File: true, Cluster: n.Cluster}, {Path: `C:\var\lib\kubelet\pki`, Cluster: n.Cluster}}
	c.Exclusions = []bundle.Exclusion{{Process: `C:\k\containerd\containerd.exe`, Impact: bundle.ImpactNone}}
	c.Networks = []bundle.Network{{Name: Network, Cluster: n.Cluster}}
	own := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: n.Stage, NodeName: n.NodeName}
	if n.HostName != "" {
		own.HostName = bundle.HostName{Name: n.HostName, Impact: bundle.ImpactReboot}
	}
	own.AuthorizedKeys = authorizedKeys(t, n.Keys)
	b := bundle.Bundle{Cluster: c, Node: own}
	b.Cluster.Normalize()
	b.Node.Normalize()
	return b
}

func authorizedKeys(t testing.TB, lines []string) []bundle.AuthorizedKey {
	t.Helper()
	var keys []bundle.AuthorizedKey
	for _, line := range lines {
		fingerprint, err := bundle.Fingerprint(line)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, bundle.AuthorizedKey{Fingerprint: fingerprint, Line: line, Impact: bundle.ImpactNone})
	}
	return keys
}

// programs are the contents of the executables, by path.
type programs map[string]string

// stored and sources cache compressed contents: making the compressor costs more than compressing these small contents.
var stored, sources sync.Map //nolint:gochecknoglobals // caches of pure functions

// Forget empties the caches, for benchmarks of memory.
func Forget() {
	stored.Clear()
	sources.Clear()
}

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

// Manifest returns the manifest of the node.
func (n Node) Manifest(t testing.TB) bundle.Manifest {
	t.Helper()
	m, err := n.Bundle(t).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Contents returns the manifest of the node, and a source of its contents.
func (n Node) Contents(t testing.TB) (bundle.Manifest, archive.Source) {
	t.Helper()
	b := n.Bundle(t)
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
	return m, archive.Join(source.(archive.Source), programs(n.Programs))
}

// Needs returns all contents of the node, as an empty host reports them missing.
func (n Node) Needs(t testing.TB) []protocol.Missing {
	t.Helper()
	m, _ := n.Contents(t)
	var list []protocol.Missing
	for _, d := range archive.Needs(m) {
		list = append(list, protocol.Missing{Digest: d})
	}
	return list
}

// Archive returns the archive for a host on which these contents are missing.
func (n Node) Archive(t testing.TB, missing []protocol.Missing) []byte {
	t.Helper()
	m, source := n.Contents(t)
	lacks := map[bundle.Digest][]int{}
	for _, x := range missing {
		lacks[x.Digest] = x.Parts
	}
	var stream bytes.Buffer
	if err := archive.Send(t.Context(), &stream, archive.Request{Manifest: m, Source: source, Missing: lacks}); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// Changed returns a copy of the node to which change was applied.
func (n Node) Changed(change func(*Node)) Node {
	n.Files, n.Secrets, n.Programs = maps.Clone(n.Files), maps.Clone(n.Secrets), maps.Clone(n.Programs)
	n.Services, n.Proxy = slices.Clone(n.Services), maps.Clone(n.Proxy)
	change(&n)
	return n
}
