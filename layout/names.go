// Package layout lists everything that a bundle may name on a node: the names of services and their programs, settings,
// state and folders. render takes its names from here, and the node agent refuses a bundle that has others, by the table that it was
// built with (docs/decisions/0023-what-a-bundle-may-name.md).
//
//	layout --names--> render --bundle--> node agent --layout.Check--> applied or refused
//
// It does not limit the contents of files and the flags of programs of the table.
package layout

import (
	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/payload"
)

// The services of a node, as users of the existing operator know them. bundle.GuardService is in no bundle.
const (
	Containerd    = "containerd"
	Kubelet       = "kubelet"
	Exporter      = "windows_exporter"
	CSIProxy      = "csi-proxy"
	HybridOverlay = "hybrid-overlay-node"
	KubeProxy     = "kube-proxy"
	CloudManager  = "cloud-node-manager"
	Gateway       = "image-gateway"
	Agent         = bundle.AgentService
)

// service is one service and the executable of the payload that it runs.
type service struct{ name, program string }

// services returns all services. None runs a program of Windows itself.
func services() []service {
	return []service{
		{Containerd, payload.Containerd}, {Kubelet, payload.Kubelet}, {Exporter, payload.Exporter}, {CSIProxy, payload.CSIProxy},
		{
			HybridOverlay, payload.HybridOverlay,
		}, {KubeProxy, payload.KubeProxy}, {CloudManager, payload.CloudManager}, {Agent, payload.Agent}, {Gateway, payload.Agent},
	}
}

// ServiceNames returns the names of all services.
func ServiceNames() []string {
	var names []string
	for _, s := range services() {
		names = append(names, s.name)
	}
	return names
}

// Flags of kube-log-runner in front of the program that it starts.
const (
	FlagLogFile       = "-log-file"
	FlagLogFileSize   = "-log-file-size"
	FlagLogFileAge    = "-log-file-age"
	FlagFlushInterval = "-flush-interval"
)

// Folders and files with a meaning of their own.
const (
	// DirRoot has everything that runs on a node.
	DirRoot = `C:\k`
	// DirRegistries is the only exclusive folder: everything else in it is removed.
	DirRegistries = `C:\k\containerd\registries`
	// DirLogs has all logs.
	DirLogs      = `C:\var\log`
	DirAgentLogs = DirLogs + `\wicd`
	DirCNIConfig = `C:\k\cni\config`
)

// What programs on a node write themselves.
const (
	DirCNIState     = `C:\var\lib\cni`
	DirKubeletCerts = `C:\var\lib\kubelet\pki`
	DirAgentCerts   = `C:\k\wicd-certs`
	DirCloudCerts   = `C:\k\cloud-node-manager-certs`
	FileKubeconfig  = `C:\k\kubeconfig`
	FileOverlayCert = DirCNIConfig + `\ovnkube-client-current.pem`
	FileLedgerCopy  = DirAgentLogs + `\` + bundle.LedgerCopy
	// OverlayCertPattern matches the client certificates of hybrid-overlay-node in DirCNIConfig, one per renewal
	// (k8s.io/client-go util/certificate names them by time).
	OverlayCertPattern = "ovnkube-client-2*.pem"
)

// statePlace is where state may be.
type statePlace struct{ path, pattern string }

func statePlaces() []statePlace {
	return []statePlace{
		{
			DirCNIState, "",
		}, {DirKubeletCerts, ""}, {DirAgentCerts, ""}, {DirCloudCerts, ""}, {FileKubeconfig, ""}, {FileOverlayCert, ""},
		{FileLedgerCopy, ""}, {DirCNIConfig, OverlayCertPattern}, {places.State, ""}, {places.Metrics, ""},
	}
}

// Names in the Host Networking Service.
const (
	BaseNetwork    = "BaseOVNKubernetesHybridOverlayNetwork"
	OverlayNetwork = "OVNKubernetesHybridOverlayNetwork"
	VIPEndpoint    = "VIPEndpoint"
	// HostCompartment is the network compartment of the host itself.
	HostCompartment = 1
)

// The variables of a proxy, and the environment of the services that has them.
const (
	ProxyEnvironment = "proxy"
	VariableHTTP     = "HTTP_PROXY"
	VariableHTTPS    = "HTTPS_PROXY"
	VariableNoProxy  = "NO_PROXY"
)

// MetadataRoute is the link-local address of the instance metadata service.
const MetadataRoute = "169.254.169.254/32"

// AmazonRoutes are the other link-local addresses of AWS: time, the two servers that activate Windows, DNS.
func AmazonRoutes() []string {
	return []string{"169.254.169.123/32", "169.254.169.250/32", "169.254.169.251/32", "169.254.169.253/32"}
}

// FeatureContainers is the feature of Windows for containers.
const FeatureContainers = "Containers"

// Firewall rules.
const (
	RuleSSH      = "wmco-ssh"
	RuleExporter = "wmco-windows-exporter"
	RuleKubelet  = "wmco-kubelet"
)

// TCP ports of services. Those of the kubelet and of kube-proxy are the defaults of their configuration
// (kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1 and kube-proxy-config.v1alpha1), which settings
// cannot change. The port on which containerd streams is chosen when it starts.
const (
	PortKubelet          = 10250
	PortKubeletHealth    = 10248
	PortKubeProxyHealth  = 10256
	PortKubeProxyMetrics = 10249
	PortExporter         = 9182
)

// Port is a TCP port of a node.
type Port struct {
	Number int
	// Service listens on it, on this IPv4 address.
	Service, Address string
}

// Ports returns the TCP ports that services of a node listen on.
func Ports() []Port {
	const all, loopback = "0.0.0.0", "127.0.0.1"
	return []Port{
		{PortKubelet, Kubelet, all}, {PortKubeletHealth, Kubelet, loopback}, {PortKubeProxyHealth, KubeProxy, all},
		{PortKubeProxyMetrics, KubeProxy, loopback}, {PortExporter, Exporter, all},
	}
}

// Firewall returns the firewall rules of every bundle. User data opens the same ports by the same names before the
// first contact.
func Firewall() []bundle.FirewallRule {
	tcp := func(name string, port int) bundle.FirewallRule {
		return bundle.FirewallRule{Name: name, Protocol: "TCP", Port: port, Impact: bundle.ImpactNone}
	}
	return []bundle.FirewallRule{tcp(RuleSSH, 22), tcp(RuleExporter, PortExporter), tcp(RuleKubelet, PortKubelet)}
}

// Exclusion returns the program that Defender does not scan.
func Exclusion() string { return payload.Find(payload.Containerd).Path }
