package render

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// What a kubelet has to end its Pods before Windows shuts down: half a minute for ordinary ones, which is a Pod's own
// default (terminationGracePeriodSeconds), and then ten seconds for critical ones. A node without Pods does not wait.
const (
	shutdownGracePeriod             = 40 * time.Second
	shutdownGracePeriodCriticalPods = 10 * time.Second
)

// Feature gates of a graceful shutdown. A kubelet does not start that has a period without the first, and ignores it on
// Windows without the second (k8s.io/kubernetes/pkg/kubelet/apis/config/validation and pkg/kubelet/nodeshutdown,
// nodeshutdown_manager_windows.go). The second is in kubelets since 1.32, off before 1.34.
const (
	gateShutdown        = "GracefulNodeShutdown"
	gateWindowsShutdown = "WindowsGracefulNodeShutdown"
)

// endsPods sets how long a kubelet has to end its Pods where it can end them before Windows shuts down. What settings
// say stays.
func (c Cluster) endsPods(config kubeletv1beta1.KubeletConfiguration) kubeletv1beta1.KubeletConfiguration {
	gates := config.FeatureGates
	if !c.kubeletTable().IsOn(gates, gateShutdown) || !c.kubeletTable().IsOn(gates, gateWindowsShutdown) ||
		len(config.ShutdownGracePeriodByPodPriority) > 0 {
		return config
	}
	if !c.overridesKubelet("shutdownGracePeriod") {
		config.ShutdownGracePeriod = metav1.Duration{Duration: shutdownGracePeriod}
	}
	// A kubelet does not start if critical Pods have more time than there is.
	if !c.overridesKubelet("shutdownGracePeriodCriticalPods") &&
		config.ShutdownGracePeriod.Duration > shutdownGracePeriodCriticalPods {
		config.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: shutdownGracePeriodCriticalPods}
	}
	return config
}

// overridesKubelet reports whether the settings have a field of KubeletConfiguration.
func (c Cluster) overridesKubelet(field string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Settings.Kubelet, &fields) != nil {
		return false // none, or DecodeSettings has refused it
	}
	_, ok := fields[field]
	return ok
}

// checkShutdownUsed returns a finding for settings that give Pods time which a kubelet on Windows does not give them.
func (c Cluster) checkShutdownUsed(given kubeletv1beta1.KubeletConfiguration, settings bundle.Ref) bundle.Findings {
	field := "shutdownGracePeriod"
	if len(given.ShutdownGracePeriodByPodPriority) > 0 {
		field = "shutdownGracePeriodByPodPriority"
	} else if given.ShutdownGracePeriod.Duration <= 0 {
		return nil
	}
	table := c.kubeletTable()
	if table.IsOn(given.FeatureGates, gateWindowsShutdown) {
		return nil
	}
	f := settingsFinding(
		settings, "kubelet."+field,
		fmt.Sprintf(
			"has no effect: the feature gate %s is off in kubelet %s, so Pods end at once when Windows shuts down",
			gateWindowsShutdown, table.Version,
		),
	)
	f.Severity, f.Reason = bundle.SeverityWarning, reason.ShutdownPeriodNotUsed
	f.Fix = fmt.Sprintf("add %s: true to kubelet.featureGates", gateWindowsShutdown)
	if _, known := table.Gates[gateWindowsShutdown]; !known {
		f.Message = fmt.Sprintf(
			"kubelet.%s has no effect: kubelet %s has no feature gate %s, so Pods end at once when Windows shuts down",
			field, table.Version, gateWindowsShutdown,
		)
		f.Fix = "drain a node before its Windows is shut down, or update the cluster: kubelets on Windows have " +
			"the gate since Kubernetes 1.32, and it is on since 1.34"
	}
	return bundle.Findings{f}
}
