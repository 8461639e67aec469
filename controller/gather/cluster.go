package gather

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// readInfrastructure reads Infrastructure/cluster and returns it.
func (g *gatherer) readInfrastructure() configv1.Infrastructure {
	var infra configv1.Infrastructure
	if !g.readObject(
		render.FromInfrastructure, place{groupConfig, "Infrastructure", "", clusterName}, &infra,
	) && !g.embeddedInfrastructure(&infra) {
		return infra
	}
	g.infra = infra
	g.cluster.InfrastructureName = infra.Status.InfrastructureName
	g.cluster.APIServerInternalURL = infra.Status.APIServerInternalURL
	if s := infra.Status.PlatformStatus; s != nil && s.Type != "" {
		g.cluster.Platform = bundle.Platform(s.Type)
		g.clusterHostedDNS(*s)
		return infra
	}
	// Clusters before 4.2 and some dumps have only the old field.
	g.cluster.Platform = bundle.Platform(infra.Status.Platform) //nolint:staticcheck // read for old objects only
	return infra
}

// clusterHostedDNS notes that the name of the API server is in a DNS that each node of Linux runs for itself, and no
// host of Windows can ask (github.com/openshift/machine-config-operator, templates/common/cloud-platform-alt-dns).
func (g *gatherer) clusterHostedDNS(s configv1.PlatformStatus) {
	var field string
	var config *configv1.CloudLoadBalancerConfig
	switch {
	case s.AWS != nil:
		field, config = "aws", s.AWS.CloudLoadBalancerConfig
	case s.Azure != nil:
		field, config = "azure", s.Azure.CloudLoadBalancerConfig
	case s.GCP != nil:
		field, config = "gcp", s.GCP.CloudLoadBalancerConfig
	}
	if config == nil || config.DNSType != configv1.ClusterHostedDNSType {
		return
	}
	name, addresses := g.cluster.APIServerInternalURL, "the addresses of the internal load balancer"
	if u, err := url.Parse(name); err == nil && u.Hostname() != "" {
		name = u.Hostname()
	}
	if hosted := config.ClusterHosted; hosted != nil && len(hosted.APIIntLoadBalancerIPs) > 0 {
		var list []string
		for _, ip := range hosted.APIIntLoadBalancerIPs {
			list = append(list, string(ip))
		}
		addresses = strings.Join(list, ", ")
	}
	g.addFinding(bundle.SeverityWarning, reason.ClusterHostedDNS, bundle.Finding{
		Object: g.cluster.Origins[render.FromInfrastructure], Field: "status.platformStatus." + field + ".cloudLoadBalancerConfig.dnsType",
		Message: "is " + string(configv1.ClusterHostedDNSType) + ": nodes of Linux resolve " + name +
			" themselves, and the DNS that Windows hosts ask has it only if it was put there",
		Fix: "add " + name + " with " + addresses +
			" to the DNS of the hosts' network, such as a private zone; wmco preflight shows whether a host finds it",
	})
}

// embeddedInfrastructure reads the copy that the machine-config-operator keeps in its ControllerConfig, for inputs
// without the object.
func (g *gatherer) embeddedInfrastructure(infra *configv1.Infrastructure) bool {
	o, ok := g.findObject(place{groupMachineConfig, "ControllerConfig", "", controllerConfigName})
	if !ok {
		return false
	}
	var cc mcfgv1.ControllerConfig
	if !g.decodeObject(o, &cc) || cc.Spec.Infra == nil {
		return false
	}
	*infra = *cc.Spec.Infra
	g.cluster.Origins[render.FromInfrastructure] = o.Ref
	g.addFinding(bundle.SeverityInfo, reason.InfrastructureFromCopy, bundle.Finding{
		Object: o.Ref, Field: "spec.infra", Message: "Infrastructure/cluster is not in the inputs; the copy in ControllerConfig is used",
		Fix: "add it: oc get infrastructures.config.openshift.io cluster -o yaml",
	})
	return true
}

func (g *gatherer) readNetworks() {
	var network configv1.Network
	if g.readObject(render.FromClusterNetwork, place{groupConfig, "Network", "", clusterName}, &network) {
		g.cluster.Network.Type = cmp.Or(network.Status.NetworkType, network.Spec.NetworkType)
		g.network = network
		g.cluster.Network.ClusterNetworks = g.podNetworks()
		g.cluster.Network.ServiceNetworks = network.Spec.ServiceNetwork
		if len(network.Spec.ServiceNetwork) == 0 {
			g.cluster.Network.ServiceNetworks = network.Status.ServiceNetwork
		}
	}
	var operator operatorv1.Network
	if !g.readObject(render.FromOperatorNetwork, place{groupOperator, "Network", "", clusterName}, &operator) {
		return
	}
	ovn := operator.Spec.DefaultNetwork.OVNKubernetesConfig
	if ovn == nil || ovn.HybridOverlayConfig == nil {
		return
	}
	g.cluster.Network.HybridOverlay = true
	g.cluster.Network.JoinNetworks = insideNetworks(ovn)
	g.cluster.Network.MachineNetworks = machineNetworks(g.infra)
	if o, ok := g.findObject(installConfigPlace()); ok {
		g.cluster.Network.InstalledNetworks, _ = installedNetworks(o)
	}
	if ovn.GenevePort != nil {
		g.cluster.Network.GenevePort = int(*ovn.GenevePort)
	}
	for _, n := range ovn.HybridOverlayConfig.HybridClusterNetwork {
		g.cluster.Network.HybridNetworks = append(g.cluster.Network.HybridNetworks, n.CIDR)
		g.cluster.Network.HybridHostPrefixes = append(g.cluster.Network.HybridHostPrefixes, int(n.HostPrefix))
	}
	if port := ovn.HybridOverlayConfig.HybridOverlayVXLANPort; port != nil {
		g.cluster.Network.HybridOverlayPort = int(*port)
	}
}

// insideNetworks returns the networks between the routers of OVN-Kubernetes, with its defaults.
func insideNetworks(ovn *operatorv1.OVNKubernetesConfig) []string {
	join, transit := cmp.Or(ovn.V4InternalSubnet, "100.64.0.0/16"), "100.88.0.0/16"
	if ovn.IPv4 != nil {
		join, transit = cmp.Or(ovn.IPv4.InternalJoinSubnet, join), cmp.Or(ovn.IPv4.InternalTransitSwitchSubnet, transit)
	}
	return []string{join, transit}
}

// machineNetworks returns the networks of machines that the installer has written down, on platforms without a cloud's
// own networks.
func machineNetworks(infra configv1.Infrastructure) []string {
	var cidrs []configv1.CIDR
	if p := infra.Spec.PlatformSpec.VSphere; p != nil {
		cidrs = append(cidrs, p.MachineNetworks...)
	}
	if p := infra.Spec.PlatformSpec.BareMetal; p != nil {
		cidrs = append(cidrs, p.MachineNetworks...)
	}
	if p := infra.Status.PlatformStatus; p != nil && p.VSphere != nil {
		cidrs = append(cidrs, p.VSphere.MachineNetworks...)
	}
	var list []string
	for _, cidr := range cidrs {
		list = append(list, string(cidr))
	}
	return sortedOnce(list)
}

func (g *gatherer) readClusterVersion() {
	var version configv1.ClusterVersion
	if g.readObject(render.FromVersion, place{groupConfig, "ClusterVersion", "", versionName}, &version) {
		g.cluster.Version = completedVersion(version.Status)
	}
}

// completedVersion returns the version that all of the cluster has, the API servers included: an update that has begun
// has another one as desired. While a cluster is installed, it is the version that is installed.
func completedVersion(s configv1.ClusterVersionStatus) string {
	for _, h := range s.History { // the newest first
		if h.State == configv1.CompletedUpdate {
			return h.Version
		}
	}
	if n := len(s.History); n > 0 {
		return s.History[n-1].Version
	}
	return s.Desired.Version
}

// readSettings reads the operator's configuration, its environment, and the proxy, which either may set.
func (g *gatherer) readSettings() {
	var cm corev1.ConfigMap
	g.readObject(render.FromSettings, place{"", "ConfigMap", g.options.Namespace, settingsName}, &cm)
	ref := g.cluster.Origins[render.FromSettings]
	settings, findings := render.DecodeSettings(cm.Data[render.SettingsKey], ref)
	g.findings = append(g.findings, findings...)
	for key := range cm.Data {
		if key != render.SettingsKey {
			g.addFinding(bundle.SeverityError, reason.SettingsInvalid, bundle.Finding{
				Object: ref, Field: `data["` + key +
					`"]`, Message: "the operator does not read this key", Fix: "move the settings to " + render.SettingsKey,
			})
		}
	}
	env := g.operatorEnvironment()
	g.cluster.Settings, findings = settings.OperatorEnvironment(env, g.cluster.Origins[render.FromOperator])
	g.findings = append(g.findings, findings...)
	g.readProxy(env)
}

// operatorEnvironment returns that of the operator: the given one, or that of its Deployment.
func (g *gatherer) operatorEnvironment() map[string]string {
	if g.options.Environment != nil {
		return g.options.Environment
	}
	var deployment appsv1.Deployment
	if !g.readObject(render.FromOperator, place{groupApps, "Deployment", g.options.Namespace, operatorName}, &deployment) {
		return nil
	}
	env := map[string]string{}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		for _, v := range c.Env {
			if v.ValueFrom == nil {
				env[v.Name] = v.Value
			}
		}
		args := append([]string{env[render.EnvArgs]}, c.Args...)
		env[render.EnvArgs] = strings.Join(args, " ")
	}
	return env
}

func (g *gatherer) controllerConfig() {
	var cc mcfgv1.ControllerConfig
	if !g.readObject(render.FromControllers, place{groupMachineConfig, "ControllerConfig", "", controllerConfigName}, &cc) {
		return
	}
	g.cluster.KubeletClientCA = string(cc.Spec.KubeAPIServerServingCAData)
	byRegistry := map[string][]string{}
	for _, b := range slices.Concat(cc.Spec.ImageRegistryBundleData, cc.Spec.ImageRegistryBundleUserData) {
		// A key of a ConfigMap cannot hold a colon, so a port is written with two dots.
		registry := strings.Replace(b.File, "..", ":", 1)
		byRegistry[registry] = append(byRegistry[registry], string(b.Data))
	}
	for _, registry := range slices.Sorted(maps.Keys(byRegistry)) {
		g.cluster.RegistryCAs = append(g.cluster.RegistryCAs, render.RegistryCA{
			Registry: registry, PEM: strings.Join(byRegistry[registry], "\n"),
		})
	}
}

func (g *gatherer) readBootstrap() {
	data, ref := g.readSecret(render.FromBootstrap, namespaceMCO, bootstrapTokenName)
	g.cluster.Bootstrap = render.Bootstrap{CA: g.secretValue(data, ref, "ca.crt").Reveal(), Token: g.secretValue(data, ref, "token")}
}

func (g *gatherer) readExporter() {
	data, ref := g.readSecret(render.FromExporterTLS, g.options.Namespace, exporterTLSName)
	g.cluster.Exporter = render.KeyPair{
		Certificate: g.secretValue(data, ref, "tls.crt").Reveal(), Key: g.secretValue(data, ref, "tls.key"),
	}
}
