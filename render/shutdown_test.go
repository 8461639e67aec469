package render

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
)

// TestHowLongAKubeletHasToEndItsPods: from Kubernetes 1.34 on a kubelet on Windows ends its Pods before Windows shuts down, unless settings say otherwise.
func TestHowLongAKubeletHasToEndItsPods(t *testing.T) {
	for _, tt := range []struct {
		cluster, override string
		period, critical  time.Duration
		finding           string
	}{
		{"4.18.1", ``, 0, 0, ""},
		{"4.20.1", ``, 0, 0, ""},
		{"4.20.1", `{"featureGates":{"WindowsGracefulNodeShutdown":true}}`, 40 * time.Second, 10 * time.Second, ""},
		{"4.20.1", `{"shutdownGracePeriod":"5m"}`, 5 * time.Minute, 0, ""},
		{"4.21.1", ``, 40 * time.Second, 10 * time.Second, ""},
		{"5.1.1", ``, 40 * time.Second, 10 * time.Second, ""},
		{"5.1.1", `{"featureGates":{"WindowsGracefulNodeShutdown":false}}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"0s"}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"10s"}`, 10 * time.Second, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"5m"}`, 5 * time.Minute, 10 * time.Second, ""},
		{"5.1.1", `{"shutdownGracePeriod":"5m","shutdownGracePeriodCriticalPods":"1m"}`, 5 * time.Minute, time.Minute, ""},
		{"5.1.1", `{"shutdownGracePeriodCriticalPods":"0s"}`, 40 * time.Second, 0, ""},
		{"5.1.1", `{"shutdownGracePeriodCriticalPods":"1m"}`, 40 * time.Second, time.Minute,
			"kubelet.shutdownGracePeriodCriticalPods 1m0s is longer than shutdownGracePeriod, 40s: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}]}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"1m","shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}]}`, time.Minute, 0,
			"kubelet.shutdownGracePeriodByPodPriority is set together with shutdownGracePeriod: the kubelet would not start"},
		{"5.1.1", `{"featureGates":{"GracefulNodeShutdown":false,"GracefulNodeShutdownBasedOnPodPriority":false,"WindowsGracefulNodeShutdown":false}}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"1m","featureGates":{"GracefulNodeShutdown":false,"GracefulNodeShutdownBasedOnPodPriority":false,"WindowsGracefulNodeShutdown":false}}`, time.Minute, 0,
			"kubelet.shutdownGracePeriod needs the feature gate GracefulNodeShutdown, which is off: the kubelet would not start"},
	} {
		c := Cluster{Version: tt.cluster, Network: Network{ServiceNetworks: []string{"172.30.0.0/16"}}, Settings: DefaultSettings()}
		c.Settings.Kubelet = json.RawMessage(tt.override)
		config, err := c.kubeletConfig(bundle.StageJoined)
		if err != nil {
			t.Fatal(err)
		}
		if config.ShutdownGracePeriod.Duration != tt.period || config.ShutdownGracePeriodCriticalPods.Duration != tt.critical {
			t.Errorf("%s with %s: %s, critical Pods %s; want %s, %s", tt.cluster, tt.override, config.ShutdownGracePeriod.Duration, config.ShutdownGracePeriodCriticalPods.Duration, tt.period, tt.critical)
		}
		got := ""
		for _, f := range c.checkKubeletOverride() {
			got += f.Message
		}
		if got != tt.finding {
			t.Errorf("%s with %s: %q, want %q", tt.cluster, tt.override, got, tt.finding)
		}
	}
	if ordinary := shutdownGracePeriod - shutdownGracePeriodCriticalPods; ordinary < corev1.DefaultTerminationGracePeriodSeconds*time.Second {
		t.Errorf("ordinary Pods have %s, less than their own default", ordinary)
	}
}
