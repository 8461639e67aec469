package render

import (
	"cmp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentv1alpha1 "k8s.io/component-base/config/v1alpha1"
	kubeproxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"

	"wmco/bundle"
	"wmco/layout"
	"wmco/payload"
)

// overlayCertsKept is how many client certificates of hybrid-overlay-node stay.
const overlayCertsKept = 2

// defaultVXLANPort needs no flag.
const defaultVXLANPort = 4789

type cniView struct {
	Network, Subnet, ServiceNetwork, ProviderAddress string
}

// networkKnown reports whether the node has its subnet and overlay network, which hybrid-overlay-node creates.
func (n Node) networkKnown() bool {
	return n.Subnet != "" && n.Facts.Network(overlayNetwork).ManagementIP != ""
}

// sourceVIP returns the address of the endpoint that kube-proxy's load balancing uses; empty until the endpoint exists.
func (n Node) sourceVIP() string { return n.Facts.Endpoint(vipEndpoint).IP }

func (e *emitter) networkEntries() {
	if _, ok := e.wantedRow(rowHybridOverlay); ok {
		e.addService(rowHybridOverlay, e.hybridOverlayService())
	}
	if !e.node.networkKnown() {
		return
	}
	e.addFile(rowCNIConf, e.fromTemplate("cni.conf", func(c Cluster) any {
		network := e.node.Facts.Network(overlayNetwork)
		return cniView{
			Network: overlayNetwork, Subnet: cmp.Or(network.AddressPrefix, e.node.Subnet),
			ServiceNetwork: c.Network.ServiceNetworks[0], ProviderAddress: network.ManagementIP,
		}
	}))
	if e.node.sourceVIP() == "" {
		return
	}
	e.addFile(rowKubeProxyConf, func(c Cluster) ([]byte, error) {
		return encodeConfig(e.kubeProxyConfig(), kubeproxyv1alpha1.KubeProxyConfiguration{})
	})
	e.addService(rowKubeProxy, e.kubeProxyService())
}

func (e *emitter) hybridOverlayService() bundle.Service {
	exe := payload.Find(payload.HybridOverlay).Path
	log := dirLogs + `\hybrid-overlay\hybrid-overlay.log`
	logs := e.cluster.Settings.Logs
	flags := map[string]string{
		"node":                 e.node.KubernetesName(e.cluster.Platform),
		"bootstrap-kubeconfig": fileKubeconfig,
		"cert-dir":             dirCNIConfig,
		"cert-duration":        "24h",
		// Without one it reads C:\etc\openvswitch\ovn_k8s.conf, which every user of the host may make, and which names a kubeconfig: that starts programs.
		"config-file":     nothingToRead,
		"k8s-apiserver":   e.cluster.APIServerInternalURL,
		"k8s-cacert":      fileBootstrapCA,
		"logfile":         log,
		"windows-service": "true",
	}
	if port := e.cluster.Network.HybridOverlayPort; port != 0 && port != defaultVXLANPort {
		flags["hybrid-overlay-vxlan-port"] = strconv.Itoa(port)
	}
	if e.cluster.Settings.Debug {
		flags["loglevel"] = "5"
	}
	if mb := logs.sizeMegabytes(); mb > 0 {
		flags["logfile-maxsize"] = strconv.FormatInt(mb, 10)
		flags["logfile-maxbackups"] = strconv.Itoa(logs.Files)
		flags["logfile-maxage"] = strconv.FormatInt(logs.ageDays(), 10)
	}
	return bundle.Service{
		Argv:         append([]string{exe}, flagList(flags)...),
		Dependencies: []string{svcKubelet},
		Reads:        []string{exe},
		Recovery:     restartAlways(),
		Probe:        bundle.Probe{Kind: bundle.ProbeRunning, DeadlineSeconds: 180},
		Logs:         logs.rotationOf(log, bundle.RotationFlags),
	}
}

func (e *emitter) kubeProxyConfig() kubeproxyv1alpha1.KubeProxyConfiguration {
	return kubeproxyv1alpha1.KubeProxyConfiguration{
		TypeMeta:         metav1.TypeMeta{APIVersion: kubeproxyv1alpha1.SchemeGroupVersion.String(), Kind: "KubeProxyConfiguration"},
		ClientConnection: componentv1alpha1.ClientConnectionConfiguration{Kubeconfig: fileKubeconfig},
		ClusterCIDR:      e.node.Subnet,
		HostnameOverride: e.node.KubernetesName(e.cluster.Platform),
		Mode:             "kernelspace",
		// kube-proxy does not start with EnableDSR without it (k8s.io/kubernetes/pkg/proxy/winkernel). It is off before
		// 1.33.
		FeatureGates: e.cluster.withGates(nil, "WinDSR"),
		Winkernel: kubeproxyv1alpha1.KubeProxyWinkernelConfiguration{
			NetworkName: overlayNetwork, SourceVip: e.node.sourceVIP(), EnableDSR: true,
		},
	}
}

func (e *emitter) kubeProxyService() bundle.Service {
	exe := payload.Find(payload.KubeProxy).Path
	log := dirLogs + `\kube-proxy\kube-proxy.log`
	logs := e.cluster.Settings.Logs
	flags := map[string]string{"config": fileKubeProxyConf, "v": e.cluster.Settings.logVerbosity(), "windows-service": "true"}
	return bundle.Service{
		Argv:         logs.logRunner(log, append([]string{exe}, flagList(flags)...)),
		Dependencies: []string{svcHybridOverlay},
		Reads:        []string{fileKubeProxyConf, payload.Find(payload.KubeLogRunner).Path, exe},
		Recovery:     restartAlways(),
		Probe:        bundle.Probe{Kind: bundle.ProbeHTTP, Target: healthOf(layout.PortKubeProxyHealth), DeadlineSeconds: 120},
		Logs:         logs.rotationOf(log, bundle.RotationWrapper),
	}
}
