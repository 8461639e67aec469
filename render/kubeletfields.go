package render

import (
	"encoding/json"
	"strings"
)

// kubeletFields are fields of KubeletConfiguration about which the same is decided.
type kubeletFields struct {
	// fields are their JSON paths, as in kubelets.Table. A path below one that is refused is refused too.
	fields string
	// about describes what the fields of a group that may be set are for, and why others may not.
	about string
	// fix is what to do in place of setting one that is refused.
	fix string
}

// allowedKubeletFields returns the fields that settings may set. Whoever may edit the settings is not meant to run a
// program, to change whom a kubelet believes, to open a port or to read a file by them. A field that a new version of
// Kubernetes brings is refused until it is here.
func allowedKubeletFields() []kubeletFields {
	return []kubeletFields{
		{about: "capacity, eviction and garbage collection", fields: `
			containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval evictionHard evictionMaxPodGracePeriod
			evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod imageGCHighThresholdPercent
			imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge kubeReserved localStorageCapacityIsolation maxPods
			mergeDefaultEvictionSettings podsPerCore systemReserved`},
		{about: "intervals and rates", fields: `
			configMapAndSecretChangeDetectionStrategy contentType eventBurst eventRecordQPS fileCheckFrequency httpCheckFrequency kubeAPIBurst
			kubeAPIQPS maxParallelImagePulls nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency
			registryBurst registryPullQPS runtimeRequestTimeout serializeImagePulls streamingConnectionIdleTimeout syncFrequency
			volumeStatsAggPeriod`},
		{about: "shutdown and container restarts", fields: `
			crashLoopBackOff crashLoopBackOff.maxContainerRestartPeriod shutdownGracePeriod shutdownGracePeriodByPodPriority
			shutdownGracePeriodByPodPriority.priority shutdownGracePeriodByPodPriority.shutdownGracePeriodSeconds shutdownGracePeriodCriticalPods`},
		{about: "CPU, memory and topology", fields: `
			cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod memoryManagerPolicy reservedMemory
			reservedMemory.limits reservedMemory.numaNode topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope`},
		{about: "credentials for images on the node", fields: `
			imagePullCredentialsVerificationPolicy preloadedImagesVerificationAllowlist`},
		{about: "logs and profiling", fields: `
			enableContentionProfiling enableDebugFlagsHandler enableProfilingHandler enableSystemLogHandler enableSystemLogQuery logging
			logging.flushFrequency logging.format logging.options logging.options.json logging.options.json.infoBufferSize
			logging.options.json.splitStream logging.options.text logging.options.text.infoBufferSize logging.options.text.splitStream
			logging.verbosity logging.vmodule logging.vmodule.filePattern logging.vmodule.verbosity showHiddenMetricsForVersion`},
		{about: "feature gates", fields: "featureGates"},
		{about: "no effect on Windows", fields: `
			allowedUnsafeSysctls failCgroupV1 hairpinMode iptablesDropBit iptablesMasqueradeBit maxOpenFiles oomScoreAdj podPidsLimit qosReserved`},
	}
}

// KubeletFieldDoc describes a field of the setting kubelet, by its name with or without kubelet. before it.
func KubeletFieldDoc(name string) (SettingDoc, bool) {
	field := strings.TrimPrefix(strings.ToLower(name), "kubelet.")
	for _, list := range [][]kubeletFields{allowedKubeletFields(), refusedKubeletFields()} {
		for _, k := range list {
			for f := range strings.FieldsSeq(k.fields) {
				if strings.ToLower(f) != field {
					continue
				}
				meaning := "A field of KubeletConfiguration that the setting kubelet may have: " + k.about + "."
				if k.fix != "" {
					meaning = "A field of KubeletConfiguration that the setting kubelet may not have: it " + k.about + ". Fix: " + k.fix + "."
				}
				return SettingDoc{Name: "kubelet." + f, Default: json.RawMessage("null"), Meaning: meaning}, true
			}
		}
	}
	return SettingDoc{}, false
}

// refusedKubeletFields returns the others.
func refusedKubeletFields() []kubeletFields {
	return []kubeletFields{
		{
			"staticPodPath staticPodURL staticPodURLHeader",
			"names Pods that run without the API server, so that no admission judges them", "remove it, and use a DaemonSet",
		},
		{
			"containerRuntimeEndpoint imageServiceEndpoint volumePluginDir",
			"names a program that the kubelet starts or obeys", "remove it; for volumes, use a CSI driver",
		},
		{
			"authentication authorization providerID rotateCertificates serverTLSBootstrap tlsCertFile tlsPrivateKeyFile",
			"decides whom the kubelet believes, or who it is", "remove it",
		},
		{
			"tlsCipherSuites tlsCurvePreferences tlsMinVersion",
			"is decided for the whole cluster", "remove it, and set spec.tlsSecurityProfile of APIServer cluster",
		},
		{
			"address enableDebuggingHandlers enableServer healthzBindAddress healthzPort port readOnlyPort",
			"decides which ports the kubelet opens, and for what", "remove it",
		},
		{"clusterDNS clusterDomain podCIDR resolvConf", "comes from the cluster's network", "remove it"},
		{
			"podLogsDir", "names a folder from which the kubelet deletes what belongs to no Pod",
			`remove it: logs of Pods are in C:\var\log\pods`,
		},
		{"tracing", "sends what the kubelet does to another computer", "remove it"},
		{
			"apiVersion enableControllerAttachDetach enforceNodeAllocatable kind registerNode registerWithTaints runOnce",
			"is set by the operator: a node would not work with another value", "remove it",
		},
		{
			"cgroupDriver cgroupRoot cgroupsPerQOS defaultPodSysctls failSwapOn kernelMemcgNotification kubeReservedCgroup kubeletCgroups " +
				"makeIPTablesUtilChains memoryReservationPolicy memorySwap memoryThrottlingFactor " +
				"protectKernelDefaults reservedSystemCPUs seccompDefault " +
				"singleProcessOOMKill systemCgroups systemReservedCgroup userNamespaces", "is for Linux only", "remove it",
		},
	}
}

// isAllowedKubeletField are the allowed fields by their paths.
func isAllowedKubeletField() map[string]bool {
	set := map[string]bool{}
	for _, group := range allowedKubeletFields() {
		for path := range strings.FieldsSeq(group.fields) {
			set[path] = true
		}
	}
	return set
}

// whyNotKubeletField returns why a field may not be set, and what to do.
func whyNotKubeletField(path string) kubeletFields {
	top, _, _ := strings.Cut(path, ".")
	for _, group := range refusedKubeletFields() {
		for name := range strings.FieldsSeq(group.fields) {
			if name == top {
				return group
			}
		}
	}
	return kubeletFields{
		about: "is not among the fields that are decided",
		fix:   "remove it; docs/settings.md lists the fields that may be set",
	}
}
