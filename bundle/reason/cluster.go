package reason

// Reasons of findings about the cluster and the operator's settings.
const (
	InfrastructureFromCopy    = "InfrastructureFromCopy"
	ClusterHostedDNS          = "ClusterHostedDNS"
	PlatformUnsupported       = "PlatformUnsupported"
	ClusterVersionUnknown     = "ClusterVersionUnknown"
	ClusterVersionUnsupported = "ClusterVersionUnsupported"
	NetworkTypeUnsupported    = "NetworkTypeUnsupported"
	HybridOverlayMissing      = "HybridOverlayMissing"
	HybridOverlayOverlaps     = "HybridOverlayOverlaps"
	ClassENetwork             = "ClassENetwork"
	MaxPodsLowered            = "MaxPodsLowered"
	ServiceNetworkMissing     = "ServiceNetworkMissing"
	ServiceNetworkIPv6        = "ServiceNetworkIPv6"
	MachineConfigGuessed      = "MachineConfigGuessed"
	KubeletFlagUnknown        = "KubeletFlagUnknown"
	ProxyInvalid              = "ProxyInvalid"
	NoProxyUnmatched          = "NoProxyUnmatched"
	ProxyWithoutStatus        = "ProxyWithoutStatus"
	ProxyStatusPredicted      = "ProxyStatusPredicted"
	SettingsInvalid           = "SettingsInvalid"
	SettingAdjusted           = "SettingAdjusted"
	EvictionThresholdMissing  = "EvictionThresholdMissing"
	ShutdownPeriodNotUsed     = "ShutdownPeriodNotUsed"
	KubeletTooNew             = "KubeletTooNew"
	KubeletKept               = "KubeletKept"
	APIServerVersionUnknown   = "APIServerVersionUnknown"
	TrustedCAPending          = "TrustedCAPending"
	TrustedCAEmpty            = "TrustedCAEmpty"
)

func clusterReasons() []Entry {
	return []Entry{
		{InfrastructureFromCopy, isInfo, "Infrastructure/cluster is not in the inputs, so the copy in ControllerConfig is used.", "Add the object: `oc get infrastructures.config.openshift.io cluster -o yaml`."},
		{ClusterHostedDNS, isWarning, "The cluster does not use the DNS of its cloud (`dnsType: ClusterHosted`). Nodes of Linux run a DNS server for themselves that knows the internal name of the API server; a Windows host asks the DNS of its network, and does not join where that lacks the name.", "Add `api-int.<cluster>.<domain>` with the addresses of the internal load balancer to the DNS of the hosts' network, such as a private zone. `wmco preflight` shows whether a host finds it."},
		{PlatformUnsupported, isError, "Windows nodes, or MachineSets for them, are not supported on this platform.", "Use one of the platforms that the finding names. Hosts without a Machine API join by the ConfigMap windows-instances."},
		{ClusterVersionUnknown, isInfo, "ClusterVersion is not in the inputs. The newest kubelet is rendered, and it is not checked whether this release supports the cluster's version.", "Add the object: `oc get clusterversions.config.openshift.io version -o yaml`."},
		{ClusterVersionUnsupported, isWarning, "This release does not support the cluster's version. No host joins. Nodes that have joined follow mirrors, CAs and other inputs with the kubelet that the finding names, unless it is newer than the API server; `wmco apply` does so only with `--allow-unsupported-version`.", "Use the release of the operator for the cluster's version ([payload.md](payload.md) has the table)."},
		{NetworkTypeUnsupported, isError, "The cluster's network type does not support Windows nodes.", "Use OVNKubernetes with the hybrid overlay."},
		{HybridOverlayMissing, isError, "The hybrid overlay network, which Windows nodes need, is not configured, or has no `hybridClusterNetwork`.", "Set `spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig` of the operator.openshift.io Network `cluster`, with a `hybridClusterNetwork`."},
		{HybridOverlayOverlaps, isError, "A range of the hybrid overlay overlaps a network of the cluster or of its machines, so some addresses are there twice.", "Give the hybrid overlay a range that no network of the cluster and no machine uses."},
		{ClassENetwork, isError, "A network of the cluster is in 240.0.0.0/4 (class E), which Windows cannot use.", "Use another range. Those of Pods and Services cannot be changed after the installation."},
		{MaxPodsLowered, isWarning, "The subnet of a Windows node has fewer addresses than the kubelet may have Pods, so `maxPods` is lowered.", "Set `kubelet.maxPods` in `windows-machine-config` to that number or less. More Pods need a shorter `hostPrefix`."},
		{ServiceNetworkMissing, isError, "The cluster's Network object has no service network.", "Give the whole object; the installer sets the field."},
		{ServiceNetworkIPv6, isError, "The first service network is IPv6. Windows nodes need IPv4.", "In a dual-stack cluster, list the IPv4 service network first."},
		{MachineConfigGuessed, isWarning, "The worker pool's current MachineConfig is not known, so the newest rendered one is used. Nodes may run another one.", "Add the pool: `oc get machineconfigpools.machineconfiguration.openshift.io worker -o yaml`."},
		{KubeletFlagUnknown, isWarning, "The worker pool's kubelet.service sets a flag that this kubelet does not have. The flag is left out.", "Nothing, if Windows nodes do not need it. Otherwise set the field of the kubelet's configuration in windows-machine-config."},
		{ProxyInvalid, isError, "The cluster's proxy has a URL or a list that cannot be used.", "Correct Proxy/cluster; percent-encode special characters of the password."},
		{NoProxyUnmatched, isWarning, "An entry of the proxy's `noProxy` matches no destination by the rules that all programs of a node follow (golang.org/x/net/http/httpproxy), such as one with `;`, or a pattern of addresses as `10.0.*`. What it means goes through the proxy.", "Write each entry as a name, `.domain`, an address or a CIDR, with an optional port, and separate them with commas: `10.0.0.0/16` for `10.0.*`."},
		{ProxyWithoutStatus, errorOrWarning, "Proxy/cluster names a proxy in its spec and has none in its status, which nodes get. For an object of a file it is an error: what the network operator would write there cannot be computed from the inputs.", "Add the objects that the finding names, or copy the Proxy with its status. In a cluster, check the network operator, which sets it."},
		{ProxyStatusPredicted, isInfo, "Proxy/cluster comes from a file without a status, as it is kept in git. The status is computed as the network operator does, from Infrastructure, Network, and the install config or the Proxy that the file replaces.", "Nothing."},
		{SettingsInvalid, isError, "A setting in the ConfigMap windows-machine-config, or in the operator's environment, is not valid.", "Correct the setting; [operations.md](operations.md) lists all settings with their defaults."},
		{EvictionThresholdMissing, isWarning, "The setting `kubelet.evictionHard` leaves out a threshold that kubelets on Windows have by default. Such a kubelet does not evict Pods when that resource runs short, and the node can stop working.", "Add the threshold that the finding names, or, on kubelets that have it, set `kubelet.mergeDefaultEvictionSettings: true`."},
		{ShutdownPeriodNotUsed, isWarning, "The settings give Pods time to end when Windows shuts down, and the kubelet of the nodes does not give it to them: its feature gate `WindowsGracefulNodeShutdown` is off, as by default before Kubernetes 1.34, or it has none, as before 1.32.", "Turn the gate on in `kubelet.featureGates` where the kubelet has it; otherwise drain nodes before Windows is shut down."},
		{KubeletTooNew, isError, "The kubelet that nodes of this cluster get is newer than one of its API servers, which Kubernetes does not support. Nothing is published and no host joins until the API servers are updated. Only the operator reports this.", "Finish the cluster's update first."},
		{KubeletKept, isInfo, "The worker pool is paused, so Windows nodes keep the kubelet of its version while the cluster is newer. They skip the versions in between when the pool is resumed. An older kubelet can block the cluster's next update.", "Resume the MachineConfigPool worker, or set `kubernetes.pausedPool` to `Follow` in windows-machine-config."},
		{APIServerVersionUnknown, isError, "The version of the API server is not known, so it is not known whether the kubelet of this release is too new for it. Only the operator reports this.", "Check that `oc version` prints the server's version."},
		{TrustedCAPending, isWarning, "The cluster has a proxy, and the network operator has not put its CAs into the ConfigMap trusted-ca yet. Hosts wait to join. Only the operator reports this.", "Nothing for ten minutes."},
		{TrustedCAEmpty, isError, "The cluster has a proxy, and the ConfigMap trusted-ca is still empty after ten minutes. Hosts wait to join. Only the operator reports this.", "Check the network operator, which fills it: `oc get clusteroperator network`, and the ConfigMap that `spec.trustedCA` of Proxy/cluster names."},
		{SettingAdjusted, isInfo, "A log limit in the operator's environment, which the existing operator accepts, is not possible here. The nearest possible one is used.", "Nothing, or set a value within the limits that the finding names."},
	}
}
