// Package payload is the table of the Windows executables that we ship: the module, the version and the path on the node
// of each. It is pure: other packages build and read the executables.
//
//	Components (module, version) --internal/payloadbuild--> bin/payload --payload/store--> Set --render--> bundle
package payload

import (
	"cmp"
	"slices"
	"strings"

	"wmco/bundle"
)

// Versions of the components. One component is one pinned Go module.
const (
	KubernetesVersion    = "v1.36.3"
	StagingVersion       = "v0.36.3" // of Kubernetes' libraries, k8s.io/component-base and others
	ContainerdVersion    = "v2.4.2"
	ShimVersion          = "v0.14.1"
	CNIVersion           = "v1.9.1"
	CSIProxyVersion      = "v1.3.0"
	ExporterVersion      = "v0.30.8"
	HybridOverlayVersion = "v0.0.0-20260707145430-b93b6a72bc15"
	ECRVersion           = "v1.36.0"
	AzureVersion         = "v1.34.3"
)

// Executable is one program on the node.
type Executable struct {
	// Name is short and stable, such as "kubelet".
	Name string
	// Path is its path on the node. For the node agent it is only a name in references; see AgentPath.
	Path string
	// Component is the component that builds it. Package is its import path.
	Component string
	Package   string
	// Module and Version are the Go module that it is built from. The version of the node agent is that of this build.
	Module  string
	Version string
	// Platforms are the platforms that get it, as in status.platformStatus.type of Infrastructure/cluster. Empty means all.
	Platforms []bundle.Platform
	// VersionCommand makes the program print its version.
	VersionCommand VersionCommand
}

// VersionCommand is a way to read the version of a program: started with Args, its output contains Prints.
type VersionCommand struct {
	Args   []string
	Prints string
}

// The executables by name.
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
	ECRProvider   = "ecr-credential-provider"
	CloudManager  = "azure-cloud-node-manager"
	Agent         = "wmco-node"
)

// Table returns every executable, sorted by name.
func Table() []Executable {
	var all []Executable
	for _, c := range Components() {
		for _, e := range c.Executables {
			e.Component, e.Module, e.Version = c.Name, cmp.Or(e.Module, c.Module), cmp.Or(e.Version, c.Version)
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Executable) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the executable of that name, or the zero value.
func Find(name string) Executable {
	for _, e := range Table() {
		if e.Name == name {
			return e
		}
	}
	return Executable{}
}

// Serves reports whether nodes of a platform get the executable.
func (e Executable) Serves(platform bundle.Platform) bool {
	return len(e.Platforms) == 0 || slices.Contains(e.Platforms, platform)
}

// On returns the platforms whose nodes get it, for messages.
func (e Executable) On() string {
	if len(e.Platforms) == 0 {
		return "every platform"
	}
	names := make([]string, 0, len(e.Platforms))
	for _, p := range e.Platforms {
		names = append(names, string(p))
	}
	return strings.Join(names, " and ")
}

// AgentPath returns the path on the node of the node agent with that digest. Each version is a separate file, because
// Windows cannot replace a running program.
func AgentPath(d bundle.Digest) string { return agentPath(d.Short()) }

// AgentPattern returns AgentPath with a placeholder, for documentation.
func AgentPattern() string { return agentPath("<digest12>") }

func agentPath(digest string) string {
	return strings.TrimSuffix(Find(Agent).Path, ".exe") + "-" + digest + ".exe"
}
