// Package payload is the table of the Windows executables that we ship: the module, the version and the path on the
// node of each. It is pure: other packages build and read the executables.
//
//	Components (module, version) --internal/build/payloadbuild--> bin/payload --payload/store--> Set --render--> bundle
package payload

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"wmco/bundle"
)

// Versions of the components. One component is one pinned Go module.
const (
	KubeLogRunnerVersion = "v0.37.2" // of k8s.io/component-base
	ContainerdVersion    = "v2.4.2"
	ShimVersion          = "v0.14.1"
	CNIVersion           = "v1.10.0"
	CSIProxyVersion      = "v1.3.0"
	ExporterVersion      = "v0.31.8"
	HybridOverlayVersion = "v0.0.0-20260707145430-b93b6a72bc15"
	ECRVersion           = "v1.37.1"
	AzureVersion         = "v1.36.5"
	ImageVersion         = "v5.42.1" // of containers/image
	GCRVersion           = "v0.0.0-20241115222652-d74b2e1d6653"
)

// Executable is one program on the node.
type Executable struct {
	// Name is short, stable and unique, such as "containerd" or "kubelet-1.36".
	Name string
	// Program is what it is on a node: "kubelet". Several executables can be one program, of which a node has one.
	Program string
	// Kubernetes is the minor version of Kubernetes whose nodes get it, such as "1.36". Empty means all.
	Kubernetes string
	// Path is its path on the node. For the node agent it is only a name in references; see AgentPath.
	Path string
	// Component is the component that builds it. Package is its import path.
	Component string
	Package   string
	// Module and Version are the Go module that it is built from. The version of the node agent is that of this build.
	Module  string
	Version string
	// Platforms are the platforms that get it, as in status.platformStatus.type of Infrastructure/cluster. Empty means
	// all.
	Platforms []bundle.Platform
	// VersionCommand makes the program print its version.
	VersionCommand VersionCommand
}

// VersionCommand is a way to read the version of a program: started with Args, its output contains Prints.
type VersionCommand struct {
	Args   []string
	Prints string
}

// The programs by name.
const (
	Kubelet       = "kubelet"
	KubeProxy     = "kube-proxy"
	KubeLogRunner = "kube-log-runner"
	Containerd    = "containerd"
	Shim          = "containerd-shim-runhcs-v1"
	WinOverlay    = "win-overlay"
	WinBridge     = "win-bridge"
	HostLocal     = "host-local"
	CSIProxy      = "csi-proxy"
	Exporter      = "windows_exporter"
	HybridOverlay = "hybrid-overlay-node"
	ACRProvider   = "acr-credential-provider"
	ECRProvider   = "ecr-credential-provider"
	GCRProvider   = "gcr-credential-provider"
	CloudManager  = "azure-cloud-node-manager"
	Agent         = "wmco-node"
	Verifier      = "image-verifier"
)

// Table returns every executable, sorted by name.
func Table() []Executable { return slices.Clone(tables().all) }

// Programs returns one executable for each program, sorted by program: the newest where there are several. All of one
// program have the same path and platforms.
func Programs() []Executable { return slices.Clone(tables().programs) }

// index is the table, sorted and looked up in both ways.
type index struct {
	all, programs []Executable
	byName        map[string]Executable
}

// tables makes the index once: a rendering of a thousand nodes looks up twenty executables for each of them.
var tables = sync.OnceValue(func() index { //nolint:gochecknoglobals // a constant
	i := index{all: listExecutables(), byName: map[string]Executable{}}
	newest := map[string]Executable{}
	for _, e := range i.all {
		if have, ok := newest[e.Program]; !ok || isOlder(have.Kubernetes, e.Kubernetes) {
			newest[e.Program] = e
		}
	}
	i.programs = slices.SortedFunc(maps.Values(newest), func(a, b Executable) int { return strings.Compare(a.Program, b.Program) })
	for _, e := range i.programs {
		i.byName[e.Program] = e
	}
	for _, e := range i.all {
		i.byName[e.Name] = e
	}
	return i
})

// listExecutables returns those of all components, sorted by name.
func listExecutables() []Executable {
	var all []Executable
	for _, c := range Components() {
		for _, e := range c.Executables {
			e.Component, e.Program, e.Module, e.Version = c.Name, cmp.Or(e.Program, e.Name), cmp.Or(e.Module, c.Module), cmp.Or(e.Version, c.Version)
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Executable) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// TestedKubernetes is the minor version of the control plane that the tests run against, and of the stand-ins that they
// put on hosts.
const TestedKubernetes = "1.36"

// ProgramsFor returns the executables of a node with that minor version of Kubernetes, on any platform, sorted by
// program.
func ProgramsFor(minor string) []Executable {
	return slices.DeleteFunc(slices.SortedFunc(slices.Values(Table()), func(a, b Executable) int {
		return strings.Compare(a.Program, b.Program)
	}), func(e Executable) bool { return !e.ServesKubernetes(minor) })
}

// isOlder compares minor versions of Kubernetes.
func isOlder(a, b string) bool {
	older, _ := MinorNumber(a)
	newer, _ := MinorNumber(b)
	return older < newer
}

// Find returns the executable of that name, or of that program as in Programs; otherwise the zero value.
func Find(name string) Executable { return tables().byName[name] }

// For returns the executable of a program for nodes with that minor version of Kubernetes, or the zero value.
func For(program, minor string) Executable {
	for _, e := range tables().all {
		if e.Program == program && e.ServesKubernetes(minor) {
			return e
		}
	}
	return Executable{}
}

// ServesKubernetes reports whether nodes with that minor version get the executable.
func (e Executable) ServesKubernetes(minor string) bool {
	return e.Kubernetes == "" || e.Kubernetes == minor
}

// Serves reports whether nodes of a platform get the executable.
func (e Executable) Serves(platform bundle.Platform) bool {
	return len(e.Platforms) == 0 || slices.Contains(e.Platforms, platform)
}

// On returns which nodes get it, for messages: the platforms, and the minor version of Kubernetes.
func (e Executable) On() string {
	on := "every platform"
	if len(e.Platforms) > 0 {
		names := make([]string, 0, len(e.Platforms))
		for _, p := range e.Platforms {
			names = append(names, string(p))
		}
		on = strings.Join(names, " and ")
	}
	if e.Kubernetes != "" {
		on += " with Kubernetes " + e.Kubernetes
	}
	return on
}

// AgentPath returns the path on the node of the node agent with that digest. Each version is a separate file, because
// Windows cannot replace a running program.
func AgentPath(d bundle.Digest) string { return agentPath(d.Short()) }

// AgentPattern returns AgentPath with a placeholder, for documentation.
func AgentPattern() string { return agentPath("<digest12>") }

func agentPath(digest string) string {
	return strings.TrimSuffix(Find(Agent).Path, ".exe") + "-" + digest + ".exe"
}
