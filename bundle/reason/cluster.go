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
		{InfrastructureFromCopy, isInfo, "Infrastructure/cluster is not in the inputs; the copy in ControllerConfig is used.", fixInFinding},
		{ClusterHostedDNS, isWarning, "Windows hosts use the DNS of their network, not the cluster's own (`dnsType: ClusterHosted`). They do not join if theirs lacks the internal name of the API server.", "Add `api-int.<cluster>.<domain>` with the addresses of the internal load balancer to that DNS. `wmco preflight` checks it."},
		{PlatformUnsupported, isError, "This platform does not support Windows nodes, or MachineSets for them.", "Use a platform in the finding. Without a Machine API, hosts join by windows-instances."},
		{ClusterVersionUnknown, isInfo, "ClusterVersion is not in the inputs. The newest kubelet is rendered, and support is not checked.", fixInFinding},
		{ClusterVersionUnsupported, isWarning, "This release does not support the cluster's version. New hosts do not join. Existing nodes run the kubelet that the finding names, and get other changes unless it is newer than the API server. `wmco apply` needs `--allow-unsupported-version`.", "Use the operator release for this version ([payload.md](payload.md))."},
		{NetworkTypeUnsupported, isError, "The cluster's network type does not support Windows nodes.", "Use OVNKubernetes with the hybrid overlay."},
		{HybridOverlayMissing, isError, "The hybrid overlay is not configured, or has no `hybridClusterNetwork`.", "Set `spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig.hybridClusterNetwork` of the operator.openshift.io Network `cluster`."},
		{HybridOverlayOverlaps, errorOrWarning, "A range of the hybrid overlay overlaps a network of the cluster or its machines. Warning for the machine network (ConfigMap kube-system/cluster-config-v1), which only commands read.", "Give the hybrid overlay an unused range."},
		{ClassENetwork, isError, "A network of the cluster is in 240.0.0.0/4 (class E), which Windows cannot use.", "Use another range. Those of Pods and Services cannot be changed after the installation."},
		{MaxPodsLowered, isWarning, "The subnet of a Windows node has fewer addresses than `maxPods`, which is lowered.", "Lower `kubelet.maxPods` in windows-machine-config, or use a shorter `hostPrefix`."},
		{ServiceNetworkMissing, isError, "The cluster's Network object has no service network.", "Give the complete object."},
		{ServiceNetworkIPv6, isError, "The first service network is IPv6. Windows nodes need IPv4.", "In a dual-stack cluster, list the IPv4 one first."},
		{MachineConfigGuessed, isWarning, "The worker pool's current MachineConfig is not known; the newest rendered one is used.", fixInFinding},
		{KubeletFlagUnknown, isWarning, "The worker pool's kubelet.service sets a flag that this kubelet does not have. It is left out.", "If Windows nodes need it, set it in `kubelet` of windows-machine-config."},
		{ProxyInvalid, isError, "The cluster's proxy has an invalid URL or list.", "Correct Proxy/cluster; percent-encode special characters of the password."},
		{NoProxyUnmatched, isWarning, "An entry of the proxy's `noProxy`, such as `10.0.*` or one with `;`, matches no destination.", "Write names, `.domain`, addresses or CIDRs, with an optional port, separated by commas: `10.0.0.0/16` for `10.0.*`."},
		{ProxyWithoutStatus, errorOrWarning, "Proxy/cluster has a proxy in its spec, but none in its status, which nodes use. Error if the status of an object from a file cannot be computed.", "Add the objects that the finding names, or the Proxy with its status. In a cluster, check the network operator."},
		{ProxyStatusPredicted, isInfo, "A Proxy/cluster of a file has no status. `wmco` computes the one that the network operator would write.", "None."},
		{SettingsInvalid, isError, "A setting in windows-machine-config or in the operator's environment is not valid.", "Correct the setting ([settings.md](settings.md))."},
		{EvictionThresholdMissing, isWarning, "`kubelet.evictionHard` lacks a default threshold of Windows kubelets. Without it the kubelet does not evict Pods, and the node can stop working.", "Add the threshold that the finding names, or set `kubelet.mergeDefaultEvictionSettings: true`."},
		{ShutdownPeriodNotUsed, isWarning, "The kubelet ignores the times for Pods to end at a shutdown: its feature gate `WindowsGracefulNodeShutdown` is off (default before Kubernetes 1.34) or missing (before 1.32).", "Turn the gate on in `kubelet.featureGates`; otherwise drain nodes before a shutdown."},
		{KubeletTooNew, isError, "The nodes' kubelet is newer than an API server, which Kubernetes does not support. Nothing is published, and no host joins. The operator checks each API server; `wmco` reports this only if the cluster is older than every kubelet of the release.", "Finish the cluster update."},
		{KubeletKept, isInfo, "The worker pool is paused, so Windows nodes keep its kubelet version, and skip versions when it is resumed. An older kubelet can block the next cluster update.", "Resume the MachineConfigPool worker, or set `kubernetes.pausedPool: Follow` in windows-machine-config."},
		{APIServerVersionUnknown, isError, "The version of the API server is not known; the kubelet may be too new for it." + byOperator, "Check that `oc version` prints the server's version."},
		{TrustedCAPending, isWarning, "The cluster has a proxy, but the network operator has not filled the ConfigMap trusted-ca yet. Hosts wait." + byOperator, "Wait ten minutes."},
		{TrustedCAEmpty, isError, "The ConfigMap trusted-ca of a cluster with a proxy is still empty after ten minutes. Hosts wait." + byOperator, "Check the network operator, which fills it (`oc get clusteroperator network`), and the ConfigMap in `spec.trustedCA` of Proxy/cluster."},
		{SettingAdjusted, isInfo, "A log limit in the operator's environment is not possible. The nearest one is used.", "None, or set a value within the limits of the finding."},
	}
}
