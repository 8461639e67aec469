package render

import (
	"wmco/gateway/places"
	"wmco/layout"
)

// The paths on a node. C:\k and C:\var\log cannot change: users' scripts, documentation and must-gather rely on them.
const (
	dirRoot       = layout.DirRoot
	dirAgent      = `C:\k\agent`
	dirContainerd = `C:\k\containerd`
	dirRegistries = layout.DirRegistries
	dirCNI        = `C:\k\cni`
	dirCNIConfig  = layout.DirCNIConfig
	dirManifests  = `C:\k\etc\kubernetes\manifests`
	dirVolumes    = `C:\k\volume-plugins`
	dirTLS        = `C:\k\tls`
	dirTLSCerts   = `C:\k\tls\certs`
	dirLogs       = layout.DirLogs
	dirAgentLogs  = layout.DirAgentLogs

	dirGateway     = places.Folder
	dirGatewayLogs = dirLogs + `\` + svcGateway

	dirCNIState     = layout.DirCNIState
	dirKubeletCerts = layout.DirKubeletCerts
	dirAgentCerts   = layout.DirAgentCerts
	dirCloudCerts   = layout.DirCloudCerts

	dirContainerdRoot  = `C:\ProgramData\containerd\root`
	dirContainerdState = `C:\ProgramData\containerd\state`

	fileKubeletConf = `C:\k\kubelet.conf`
	fileKubeletCA   = `C:\k\kubelet-ca.crt`
	// filePullCredentials is where kubelets look first: config.json in their root directory (k8s.io/kubernetes cmd/kubelet/app, RunKubelet).
	filePullCredentials     = `C:\var\lib\kubelet\config.json`
	fileBootstrapCA         = `C:\k\bootstrap-ca.crt`
	fileBootstrapKubeconfig = `C:\k\bootstrap-kubeconfig`
	fileKubeconfig          = layout.FileKubeconfig
	fileAgentKubeconfig     = `C:\k\wicd-kubeconfig`
	fileCloudKubeconfig     = `C:\k\cloud-node-manager-kubeconfig`
	fileCredentialProvider  = `C:\k\credential-provider-config.yaml`
	fileCloudConf           = `C:\k\cloud.conf`
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
	fileOverlayCert   = layout.FileOverlayCert
	cloudClientCert   = dirCloudCerts + `\cloud-node-manager-client-current.pem`
	fileLedgerCopy    = layout.FileLedgerCopy
)

// Names of services.
const (
	svcContainerd    = layout.Containerd
	svcKubelet       = layout.Kubelet
	svcExporter      = layout.Exporter
	svcCSIProxy      = layout.CSIProxy
	svcHybridOverlay = layout.HybridOverlay
	svcKubeProxy     = layout.KubeProxy
	svcCloudManager  = layout.CloudManager
	svcAgent         = layout.Agent
	svcGateway       = layout.Gateway
)

// Names in the Host Networking Service.
const (
	baseNetwork    = layout.BaseNetwork
	overlayNetwork = layout.OverlayNetwork
	vipEndpoint    = layout.VIPEndpoint
)

// containerdPipe is where containerd listens, with the slashes of a URL for the kubelet.
const (
	containerdPipe    = `\\.\pipe\containerd-containerd`
	containerdPipeURL = "npipe://./pipe/containerd-containerd"
)

// proxyEnvironment is the environment of every service.
const proxyEnvironment = layout.ProxyEnvironment

// portExporter is the port of windows_exporter.
const portExporter = layout.PortExporter

// portDoc describes the purpose of a port of the firewall.
func portDoc(rule string) string {
	switch rule {
	case layout.RuleSSH:
		return "first contact, port 22"
	case layout.RuleExporter:
		return "metrics, port 9182"
	case layout.RuleKubelet:
		return "logs, exec and kubelet metrics, port 10250"
	}
	return ""
}

// metadataRoute is the link-local address of the instance metadata service.
const metadataRoute = layout.MetadataRoute

// nothingToRead is the file of Windows that is there and empty.
const nothingToRead = "NUL"

// The taint, label and description that mark Windows nodes and their services.
const (
	windowsTaintKey   = "os"
	windowsTaintValue = "Windows"
	osLabel           = "node.openshift.io/os_id=Windows"
	descriptionPrefix = "OpenShift managed "
)
