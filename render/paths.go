package render

import "wmco/bundle"

// The paths on a node. C:\k and C:\var\log cannot change: users' scripts, documentation and must-gather rely on them.
const (
	dirRoot       = `C:\k`
	dirAgent      = `C:\k\agent`
	dirContainerd = `C:\k\containerd`
	dirRegistries = `C:\k\containerd\registries`
	dirCNI        = `C:\k\cni`
	dirCNIConfig  = `C:\k\cni\config`
	dirManifests  = `C:\k\etc\kubernetes\manifests`
	dirTLS        = `C:\k\tls`
	dirTLSCerts   = `C:\k\tls\certs`
	dirLogs       = `C:\var\log`
	dirAgentLogs  = dirLogs + `\wicd`

	dirCNIState     = `C:\var\lib\cni`
	dirKubeletCerts = `C:\var\lib\kubelet\pki`
	dirAgentCerts   = `C:\k\wicd-certs`
	dirCloudCerts   = `C:\k\cloud-node-manager-certs`

	dirContainerdRoot  = `C:\ProgramData\containerd\root`
	dirContainerdState = `C:\ProgramData\containerd\state`

	fileKubeletConf         = `C:\k\kubelet.conf`
	fileKubeletCA           = `C:\k\kubelet-ca.crt`
	fileBootstrapCA         = `C:\k\bootstrap-ca.crt`
	fileBootstrapKubeconfig = `C:\k\bootstrap-kubeconfig`
	fileKubeconfig          = `C:\k\kubeconfig`
	fileAgentKubeconfig     = `C:\k\wicd-kubeconfig`
	fileCloudKubeconfig     = `C:\k\cloud-node-manager-kubeconfig`
	fileCredentialProvider  = `C:\k\credential-provider-config.yaml`
	fileTrustedCAs          = `C:\k\ca-bundle.crt`
	fileContainerdConf      = `C:\k\containerd\containerd_conf.toml`
	fileCNIConf             = `C:\k\cni\config\cni.conf`
	fileKubeProxyConf       = `C:\k\kube-proxy.conf`
	fileExporterCert        = `C:\k\tls\certs\tls.crt`
	fileExporterKey         = `C:\k\tls\certs\tls.key`
	fileExporterConf        = `C:\k\tls\windows-exporter-webconfig.yaml`

	// kubeletClientCert is the file of the kubelet's current client certificate (k8s.io/client-go
	// util/certificate, FileStore).
	kubeletClientCert = dirKubeletCerts + `\kubelet-client-current.pem`
	fileOverlayCert   = dirCNIConfig + `\ovnkube-client-current.pem`
	cloudClientCert   = dirCloudCerts + `\cloud-node-manager-client-current.pem`
	fileLedgerCopy    = dirAgentLogs + `\` + bundle.LedgerCopy
)

// Names of services, as the existing operator's users know them.
const (
	svcContainerd    = "containerd"
	svcKubelet       = "kubelet"
	svcExporter      = "windows_exporter"
	svcCSIProxy      = "csi-proxy"
	svcHybridOverlay = "hybrid-overlay-node"
	svcKubeProxy     = "kube-proxy"
	svcCloudManager  = "cloud-node-manager"
	svcAgent         = bundle.AgentService
)

// Names in the Host Networking Service.
const (
	baseNetwork    = "BaseOVNKubernetesHybridOverlayNetwork"
	overlayNetwork = "OVNKubernetesHybridOverlayNetwork"
	vipEndpoint    = "VIPEndpoint"
)

// containerdPipe is where containerd listens, with the slashes of a URL for the kubelet.
const (
	containerdPipe    = `\\.\pipe\containerd-containerd`
	containerdPipeURL = "npipe://./pipe/containerd-containerd"
)

// proxyEnvironment is the environment of every service.
const proxyEnvironment = "proxy"

// portExporter is the port of windows_exporter.
const portExporter = 9182

// openPort is a port that the firewall of a node opens, and what for.
type openPort struct {
	bundle.FirewallRule
	doc string
}

func openPorts() []openPort {
	tcp := func(name string, port int, doc string) openPort {
		return openPort{bundle.FirewallRule{Name: name, Protocol: "TCP", Port: port, Impact: bundle.ImpactNone}, doc}
	}
	return []openPort{
		tcp("wmco-ssh", 22, "first contact, port 22"),
		tcp("wmco-windows-exporter", portExporter, "metrics, port 9182"),
		tcp("wmco-kubelet", 10250, "logs, exec and kubelet metrics, port 10250"),
	}
}

// Firewall returns the firewall rules of every bundle. User data opens the same ports by the same names before the first
// contact.
func Firewall() []bundle.FirewallRule {
	var rules []bundle.FirewallRule
	for _, p := range openPorts() {
		rules = append(rules, p.FirewallRule)
	}
	return rules
}

// metadataRoute is the link-local address of the instance metadata service.
const metadataRoute = "169.254.169.254/32"

// The taint, label and description that mark Windows nodes and their services.
const (
	windowsTaintKey   = "os"
	windowsTaintValue = "Windows"
	osLabel           = "node.openshift.io/os_id=Windows"
	descriptionPrefix = "OpenShift managed "
)
