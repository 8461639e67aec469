package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
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
		{"4.20.1", `{"shutdownGracePeriod":"5m"}`, 5 * time.Minute, 0,
			"kubelet.shutdownGracePeriod has no effect: the feature gate WindowsGracefulNodeShutdown is off in kubelet VERSION, so Pods end at once when Windows shuts down"},
		{"4.20.1", `{"shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}]}`, 0, 0,
			"kubelet.shutdownGracePeriodByPodPriority has no effect: the feature gate WindowsGracefulNodeShutdown is off in kubelet VERSION, so Pods end at once when Windows shuts down"},
		{"4.20.1", `{"shutdownGracePeriod":"5m","featureGates":{"WindowsGracefulNodeShutdown":true}}`, 5 * time.Minute, 10 * time.Second, ""},
		{"4.20.1", `{"shutdownGracePeriod":"0s"}`, 0, 0, ""},
		{"4.18.1", `{"shutdownGracePeriod":"5m"}`, 5 * time.Minute, 0,
			"kubelet.shutdownGracePeriod has no effect: kubelet VERSION has no feature gate WindowsGracefulNodeShutdown, so Pods end at once when Windows shuts down"},
		{"4.21.1", ``, 40 * time.Second, 10 * time.Second, ""},
		{"5.1.1", ``, 40 * time.Second, 10 * time.Second, ""},
		{"4.21.1", `{"featureGates":{"GracefulNodeShutdown":false,"GracefulNodeShutdownBasedOnPodPriority":false}}`, 0, 0, ""},
		{"5.1.1", `{"featureGates":{"WindowsGracefulNodeShutdown":false}}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"1m","featureGates":{"WindowsGracefulNodeShutdown":false}}`, time.Minute, 0,
			"kubelet.shutdownGracePeriod has no effect: the feature gate WindowsGracefulNodeShutdown is off in kubelet VERSION, so Pods end at once when Windows shuts down"},
		{"5.1.1", `{"shutdownGracePeriod":"0s"}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"500ms"}`, 500 * time.Millisecond, 0, "kubelet.shutdownGracePeriod 500ms is neither 0s nor at least 1s: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriod":"-1s"}`, -time.Second, 0, "kubelet.shutdownGracePeriod -1s is neither 0s nor at least 1s: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriodCriticalPods":"1ms"}`, 40 * time.Second, time.Millisecond,
			"kubelet.shutdownGracePeriodCriticalPods 1ms is neither 0s nor at least 1s: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriod":"10s"}`, 10 * time.Second, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"5m"}`, 5 * time.Minute, 10 * time.Second, ""},
		{"5.1.1", `{"shutdownGracePeriod":"5m","shutdownGracePeriodCriticalPods":"1m"}`, 5 * time.Minute, time.Minute, ""},
		{"5.1.1", `{"shutdownGracePeriodCriticalPods":"0s"}`, 40 * time.Second, 0, ""},
		{"5.1.1", `{"shutdownGracePeriodCriticalPods":"1m"}`, 40 * time.Second, time.Minute,
			"kubelet.shutdownGracePeriodCriticalPods 1m0s is longer than shutdownGracePeriod, 40s: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}]}`, 0, 0, ""},
		{"5.1.1", `{"shutdownGracePeriod":"1m","shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}]}`, time.Minute, 0,
			"kubelet.shutdownGracePeriodByPodPriority is set together with shutdownGracePeriod: the kubelet would not start"},
		{"5.1.1", `{"shutdownGracePeriodByPodPriority":[{"priority":0,"shutdownGracePeriodSeconds":9}],"featureGates":{"GracefulNodeShutdownBasedOnPodPriority":false}}`, 0, 0,
			"kubelet.shutdownGracePeriodByPodPriority needs the feature gate GracefulNodeShutdownBasedOnPodPriority, which is off: the kubelet would not start"},
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
		got, want := "", strings.ReplaceAll(tt.finding, "VERSION", c.KubeletVersion())
		for _, f := range c.checkKubeletOverride() {
			got += f.Message
			if refuses := strings.HasSuffix(f.Message, "would not start"); refuses != (f.Severity == bundle.SeverityError) || refuses == (f.Reason == reason.ShutdownPeriodNotUsed) {
				t.Errorf("%s with %s: %+v", tt.cluster, tt.override, f)
			}
		}
		if got != want {
			t.Errorf("%s with %s: %q, want %q", tt.cluster, tt.override, got, want)
		}
	}
	if ordinary := shutdownGracePeriod - shutdownGracePeriodCriticalPods; ordinary < corev1.DefaultTerminationGracePeriodSeconds*time.Second {
		t.Errorf("ordinary Pods have %s, less than their own default", ordinary)
	}
}

// TestTheGateOfAShutdownIsNamedWhereThereIsOne: the fix of the finding can be followed on the kubelet of the cluster.
func TestTheGateOfAShutdownIsNamedWhereThereIsOne(t *testing.T) {
	for cluster, hasGate := range map[string]bool{"4.18.1": false, "4.19.1": true, "4.20.1": true} {
		c := Cluster{Version: cluster, Settings: DefaultSettings()}
		c.Settings.Kubelet = json.RawMessage(`{"shutdownGracePeriod":"5m"}`)
		found := c.checkKubeletOverride()
		if len(found) != 1 || (found[0].Fix == "add WindowsGracefulNodeShutdown: true to kubelet.featureGates") != hasGate {
			t.Fatalf("%s: %+v", cluster, found)
		}
		c.Settings.Kubelet = json.RawMessage(`{"shutdownGracePeriod":"5m","featureGates":{"WindowsGracefulNodeShutdown":true}}`)
		if after := c.checkKubeletOverride(); (len(after) == 0) != hasGate {
			t.Errorf("%s, with the gate: %+v", cluster, after)
		}
	}
}
