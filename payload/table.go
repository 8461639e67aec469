// Package payload is the table of the Windows executables that we ship: where each comes from, its version and its
// path on the node. It is pure; building and reading the executables happens elsewhere.
package payload

// Versions of the components. One component is one pinned Go module.
const (
	KubernetesVersion    = "v1.36.3"
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
	// Path is where it lies on the node.
	Path string
	// Module and Version are the Go module that it is built from.
	Module  string
	Version string
}

const (
	moduleKubernetes = "k8s.io/kubernetes"
	moduleCNI        = "github.com/containernetworking/plugins"
)

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

// Table lists every executable, by name.
func Table() []Executable {
	return []Executable{
		{CloudManager, `C:\k\azure-cloud-node-manager.exe`, "sigs.k8s.io/cloud-provider-azure", AzureVersion},
		{Containerd, `C:\k\containerd\containerd.exe`, "github.com/containerd/containerd/v2", ContainerdVersion},
		{Shim, `C:\k\containerd\containerd-shim-runhcs-v1.exe`, "github.com/Microsoft/hcsshim", ShimVersion},
		{CSIProxy, `C:\k\csi-proxy.exe`, "github.com/kubernetes-csi/csi-proxy", CSIProxyVersion},
		{ECRProvider, `C:\k\ecr-credential-provider.exe`, "k8s.io/cloud-provider-aws", ECRVersion},
		{HostLocal, `C:\k\cni\host-local.exe`, moduleCNI, CNIVersion},
		{HybridOverlay, `C:\k\hybrid-overlay-node.exe`, "github.com/ovn-kubernetes/ovn-kubernetes/go-controller", HybridOverlayVersion},
		{KubeLogRunner, `C:\k\kube-log-runner.exe`, "k8s.io/component-base", "v0.36.3"},
		{KubeProxy, `C:\k\kube-proxy.exe`, moduleKubernetes, KubernetesVersion},
		{Kubelet, `C:\k\kubelet.exe`, moduleKubernetes, KubernetesVersion},
		{WinBridge, `C:\k\cni\win-bridge.exe`, moduleCNI, CNIVersion},
		{WinOverlay, `C:\k\cni\win-overlay.exe`, moduleCNI, CNIVersion},
		{Exporter, `C:\k\windows_exporter.exe`, "github.com/prometheus-community/windows_exporter", ExporterVersion},
	}
}

// Find returns the executable of that name, zero if there is none.
func Find(name string) Executable {
	for _, e := range Table() {
		if e.Name == name {
			return e
		}
	}
	return Executable{}
}

// ClusterVersion is a minor version of OpenShift or OKD that this payload serves.
type ClusterVersion struct {
	// Cluster is "5.0", Kubernetes the minor version of its API server.
	Cluster    string
	Kubernetes string
}

// ClusterVersions lists them. Our kubelet must not be newer than the API server, and at most three minor versions
// older (kubernetes.io/releases/version-skew-policy).
func ClusterVersions() []ClusterVersion {
	return []ClusterVersion{{"5.0", "1.36"}, {"5.1", "1.37"}}
}
