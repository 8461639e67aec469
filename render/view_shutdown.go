package render

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/bundle"
)

// What a kubelet has to end its Pods before Windows shuts down: half a minute for ordinary ones, which is a Pod's own default
// (terminationGracePeriodSeconds), and then ten seconds for critical ones. A node without Pods does not wait.
const (
	shutdownGracePeriod             = 40 * time.Second
	shutdownGracePeriodCriticalPods = 10 * time.Second
)

// Feature gates of a graceful shutdown. A kubelet does not start that has a period without the first, and ignores one on Windows without the second
// (k8s.io/kubernetes/pkg/kubelet/apis/config/validation and pkg/kubelet/nodeshutdown, nodeshutdown_manager_windows.go).
const (
	gateShutdown        = "GracefulNodeShutdown"
	gateWindowsShutdown = "WindowsGracefulNodeShutdown"
)

// endsPods sets how long a kubelet has to end its Pods where it can end them before Windows shuts down. What settings say stays.
func (c Cluster) endsPods(config kubeletv1beta1.KubeletConfiguration) kubeletv1beta1.KubeletConfiguration {
	gates := config.FeatureGates
	if !isGateOn(gates, c.kubelet(), gateShutdown) || !isGateOn(gates, c.kubelet(), gateWindowsShutdown) || len(config.ShutdownGracePeriodByPodPriority) > 0 {
		return config
	}
	if !c.overrides("shutdownGracePeriod") {
		config.ShutdownGracePeriod = metav1.Duration{Duration: shutdownGracePeriod}
	}
	// A kubelet does not start if critical Pods have more time than there is.
	if !c.overrides("shutdownGracePeriodCriticalPods") && config.ShutdownGracePeriod.Duration > shutdownGracePeriodCriticalPods {
		config.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: shutdownGracePeriodCriticalPods}
	}
	return config
}

// overrides reports whether the settings have a field of KubeletConfiguration.
func (c Cluster) overrides(field string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Settings.Kubelet, &fields) != nil {
		return false // none, or DecodeSettings has refused it
	}
	_, ok := fields[field]
	return ok
}

// checkShutdown applies the kubelet's own rules for the periods of a shutdown to the settings. given is what they say.
func (c Cluster) checkShutdown(given kubeletv1beta1.KubeletConfiguration) bundle.Findings {
	whole := c.endsPods(given)
	period, critical := whole.ShutdownGracePeriod.Duration, whole.ShutdownGracePeriodCriticalPods.Duration
	bad := func(field, format string, args ...any) bundle.Findings {
		return bundle.Findings{invalid("kubelet."+field, "%s: the kubelet would not start", fmt.Sprintf(format, args...))}
	}
	switch {
	case period > 0 && !isGateOn(given.FeatureGates, c.kubelet(), gateShutdown):
		return bad("shutdownGracePeriod", "needs the feature gate %s, which is off", gateShutdown)
	case period > 0 && len(given.ShutdownGracePeriodByPodPriority) > 0:
		return bad("shutdownGracePeriodByPodPriority", "is set together with shutdownGracePeriod")
	case critical > period:
		return bad("shutdownGracePeriodCriticalPods", "%s is longer than shutdownGracePeriod, %s", critical, period)
	}
	return nil
}
