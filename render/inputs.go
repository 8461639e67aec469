package render

import (
	"encoding/json"
	"errors"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// Inputs are the plain facts about one node and its cluster.
type Inputs struct {
	Cluster Cluster
	Node    Node
}

// Cluster holds what all nodes share. What is absent is zero; Origins names the object that each value comes from.
type Cluster struct {
	Platform bundle.Platform
	// InfrastructureName is the identity of the cluster, such as "example-x7k2p".
	InfrastructureName string
	// APIServerInternalURL is where nodes reach the API server, such as https://api-int.example.com:6443.
	APIServerInternalURL string
	// Version is the newest completed version in ClusterVersion's history, "5.0.3"; empty if unknown. An update that
	// has begun is not in it.
	Version string
	Pool    WorkerPool

	Network Network
	Proxy   Proxy
	TLS     TLSProfile

	// TrustedCAs is a PEM text for the host's root store: the trusted CAs that the proxy names.
	TrustedCAs string
	// RegistryCAs are trusted for one registry each.
	RegistryCAs []RegistryCA
	// KubeletClientCA is the PEM text of the CAs that may call the kubelet.
	KubeletClientCA string

	Bootstrap Bootstrap
	Exporter  KeyPair
	Machine   MachineConfig
	Mirrors   mirrors.Inputs
	// PinnedImages are those of the PinnedImageSets for Windows nodes, by object and then in their order.
	PinnedImages []PinnedImage
	Settings     Settings
	Origins      Origins
	// Copies reports whether the objects are copies outside a cluster (files, a must-gather). What the cluster itself
	// makes may be masked in copies, which is then a warning instead of an error.
	Copies bool
}

// Network is what the bundle needs of the cluster's network.
type Network struct {
	// Type is Network/cluster's networkType; only OVNKubernetes is supported.
	Type string
	// ServiceNetworks are CIDRs, the first is used.
	ServiceNetworks []string
	// HybridOverlay reports whether the hybrid overlay is configured.
	HybridOverlay bool
	// ClusterNetworks are the CIDRs of Pods on Linux nodes, JoinNetworks those that OVN-Kubernetes uses inside, and
	// MachineNetworks those of machines where the platform has them.
	ClusterNetworks, JoinNetworks, MachineNetworks []string
	// InstalledNetworks are those of machines in the installer's configuration. The operator does not read it.
	InstalledNetworks []string
	// HybridNetworks are the CIDRs of which OVN gives each Windows node its pod subnet.
	HybridNetworks []string
	// HybridHostPrefixes are the lengths of the prefixes of nodes' subnets in each of them; 0 is the default, 23.
	HybridHostPrefixes []int
	// HybridOverlayPort is the custom VXLAN port; 0 is the default, 4789.
	HybridOverlayPort int
	// GenevePort is the port of the overlay network of Linux nodes; 0 is the default, 6081.
	GenevePort int
}

// Proxy is the cluster-wide proxy. The URLs may hold passwords.
type Proxy struct {
	HTTP  bundle.Secret
	HTTPS bundle.Secret
	// NoProxy is comma-separated.
	NoProxy string
}

// TLSProfile is the API server's TLS profile, where one is set: the minimum version in Go's words (VersionTLS12) and
// cipher suites in IANA names.
type TLSProfile struct {
	MinVersion string
	Ciphers    []string
}

// IsZero reports whether the cluster has the default.
func (t TLSProfile) IsZero() bool { return t.MinVersion == "" && len(t.Ciphers) == 0 }

// RegistryCA is a CA for one registry.
type RegistryCA struct {
	// Registry is host[:port].
	Registry string
	PEM      string
}

// Bootstrap is the identity with which a host joins the cluster.
type Bootstrap struct {
	CA    string
	Token bundle.Secret
}

// KeyPair is a PEM certificate and its key.
type KeyPair struct {
	Certificate string
	Key         bundle.Secret
}

// MachineConfig is the part of the worker pool's current rendered MachineConfig that is about kubelets.
type MachineConfig struct {
	// KubeletFlags are the flags of kubelet.service that a Windows kubelet shares, by name without dashes.
	KubeletFlags map[string]string
	// Providers are the configurations of credential providers, by the names of their files.
	Providers map[string]string
	// Azure is the identity in the file of the cloud (cloud.conf).
	Azure AzureIdentity
}

// AzureIdentity is what cloud.conf of Linux nodes says about how they log in to Azure. The secrets in that file are left out: a Windows host uses its
// managed identity or none.
type AzureIdentity struct {
	Cloud           string `json:"cloud,omitempty"`
	ResourceManager string `json:"resourceManagerEndpoint,omitempty"`
	Tenant          string `json:"tenantId,omitempty"`
	// Managed is for the identity of the virtual machine, UserAssigned the one of several.
	Managed      bool   `json:"useManagedIdentityExtension"`
	UserAssigned string `json:"userAssignedIdentityID,omitempty"`
}

// errCloudConfig does not quote the file, which may hold a secret.
var errCloudConfig = errors.New("it is not JSON with the fields of Azure")

// ParseAzureIdentity reads cloud.conf.
func ParseAzureIdentity(text []byte) (AzureIdentity, error) {
	var a AzureIdentity
	if json.Unmarshal(text, &a) != nil {
		return AzureIdentity{}, errCloudConfig
	}
	return a, nil
}

// Backing is what stands behind a node.
type Backing string

const (
	// BackingMachine is a Machine of the Machine API.
	BackingMachine Backing = "Machine"
	// BackingInstance is a host that the user brought (BYOH), an entry of windows-instances.
	BackingInstance Backing = "Instance"
	// BackingNode is a node with neither.
	BackingNode Backing = "Node"
)

// Node is one Windows host, before or after it has joined.
type Node struct {
	// Name is that of the Node object; empty before there is one.
	Name    string
	Backing Backing
	// Address is where the host is reached: the Machine's internal IPv4 address, or the entry of windows-instances.
	Address string
	// MachineName and MachineUID are those of the Machine; empty for instances.
	MachineName, MachineUID string
	// ProviderID is that of the Machine, and on AWS else that of the Node; empty for instances that have not joined.
	ProviderID string
	// Ending is true for a Machine that is being deleted or has failed: its addresses may be those of another Machine
	// already.
	Ending bool
	// Username is the account of an instance, as the user gave it.
	Username string
	// Addresses and HostNames are those of the Machine or the instance, in their order. Without records
	// (gather.Options), those that its Node reports are added.
	Addresses []string
	HostNames []string
	// Reported are the addresses that the Node reports. They say nothing about another host.
	Reported []string
	// Subnet is the CIDR of the pod subnet that OVN gave the node.
	Subnet string
	Facts  bundle.Facts
	// Unconfirmed is true for a Node of which the operator does not know the host: nothing is published for it.
	Unconfirmed bool
	// ClaimedBy is the Node without a known host that reports an address of this host, which is not known to be a Node.
	// It is no evidence.
	ClaimedBy string
	// AlsoClaimedBy are other Nodes that do.
	AlsoClaimedBy []string
	// RemovedEntry is the entry of windows-instances by which the host joined, where it is not there any longer.
	RemovedEntry string
	// OlderAgent is true for a Node whose agent reads no name of a Node in a layer.
	OlderAgent bool
	// NoKeys is true for a Node whose agent reads no authorized keys in a layer.
	NoKeys bool
	// NoPolicies is true for a Node whose agent reads no policies of Windows in a layer.
	NoPolicies bool
	// NoAmazonRoutes is true for a Node whose agent knows of no route but that to the instance metadata.
	NoAmazonRoutes bool
	// AcceptedKey is the public key, "ALGORITHM BASE64", with which the operator logged in to the host last; empty if
	// that is not known.
	AcceptedKey string
	// Origins are the Node, Machine and instances objects, for provenance.
	Origins Origins
}

// ID returns the node's name, or the host's address if there is no node yet.
func (n Node) ID() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Address
}

// Stage returns the joined stage once the node exists.
func (n Node) Stage() bundle.Stage {
	if n.Name != "" {
		return bundle.StageJoined
	}
	return bundle.StageJoin
}

// Incomplete reports whether the bundle of the node lacks what its host's facts decide. It shows what objects alone
// decide; applied, it would remove the rest from the host.
func (n Node) Incomplete() bool { return n.Stage() == bundle.StageJoined && n.Facts.IsZero() }

// Origin names the role of an input object. A catalog row lists the origins that cause it.
type Origin string

// The origins.
const (
	FromInfrastructure  Origin = "Infrastructure"
	FromClusterNetwork  Origin = "Network"
	FromOperatorNetwork Origin = "OperatorNetwork"
	FromProxy           Origin = "Proxy"
	FromTrustedCA       Origin = "TrustedCA"
	FromControllers     Origin = "ControllerConfig"
	FromMachineConfig   Origin = "MachineConfig"
	FromBootstrap       Origin = "Bootstrap"
	FromExporterTLS     Origin = "ExporterTLS"
	FromAPIServer       Origin = "APIServer"
	FromVersion         Origin = "ClusterVersion"
	FromMirrors         Origin = "mirror sets"
	FromImage           Origin = "Image"
	FromPullSecret      Origin = "pull secret"
	FromPinnedImages    Origin = "PinnedImageSets"
	FromSettings        Origin = "Settings"
	FromOperator        Origin = "Operator"
	FromPrivateKey      Origin = "private key"
	FromNode            Origin = "Node"
	FromMachine         Origin = "Machine"
	FromInstances       Origin = "Instances"
)

// Origins maps roles to objects.
type Origins map[Origin]bundle.Ref

// WithoutCredentials returns the cluster as it is whatever its credentials are, for who answers those who may not know
// them: its bundles and findings depend on no password or token, nor on who has one.
func (c Cluster) WithoutCredentials() Cluster {
	for _, s := range []*bundle.Secret{&c.Proxy.HTTP, &c.Proxy.HTTPS} {
		if !s.IsZero() {
			*s = bundle.NewSecret("http://proxy.invalid") // the whole of it: a password can make an address invalid
		}
	}
	c.Bootstrap.Token, c.Exporter.Key = c.Bootstrap.Token.Masked(), c.Exporter.Key.Masked()
	c.Mirrors.PullSecret = bundle.NewSecret("{}")
	return c
}

// Masked returns the cluster with every secret replaced by bundle.MaskedText, for previews.
func (c Cluster) Masked() Cluster {
	c.Proxy.HTTP, c.Proxy.HTTPS = maskURL(c.Proxy.HTTP), maskURL(c.Proxy.HTTPS)
	c.Bootstrap.Token = c.Bootstrap.Token.Masked()
	c.Exporter.Key = c.Exporter.Key.Masked()
	c.Mirrors.PullSecret = c.Mirrors.PullSecret.Masked()
	return c
}
