package render

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/payload"
	"wmco/render/reason"
)

const (
	ovnKubernetes = "OVNKubernetes"
	// build1809 is Windows Server 2019, whose overlay network cannot use another VXLAN port.
	build1809               = 17763
	credentialProviderField = "spec.config.storage.files[ecr-credential-provider.yaml]"
	// overlayDocs is where users read how to turn the overlay on.
	overlayDocs = "set spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig of the operator.openshift.io Network cluster; Windows nodes need it"
)

// report collects findings about one object.
type report struct {
	findings bundle.Findings
	ref      bundle.Ref
}

func (r *report) add(severity bundle.Severity, why, field, message, fix string) {
	r.findings = append(r.findings, bundle.Finding{Severity: severity, Reason: why, Object: r.ref, Field: field, Message: message, Fix: fix})
}

// check judges the cluster's inputs. What is refused here cannot be rendered.
func (c Cluster) check() bundle.Findings {
	return slices.Concat(
		c.checkInfrastructure(), c.checkNetwork(), c.checkVersion(), c.Proxy.check(c.Origins[FromProxy]),
		c.checkCertificates(), c.checkMachineConfig(), c.checkPauseImage(),
	)
}

func (c Cluster) checkInfrastructure() bundle.Findings {
	r := report{ref: c.Origins[FromInfrastructure]}
	if r.ref.IsZero() {
		r.ref = bundle.Ref{Kind: "Infrastructure", Name: "cluster"}
		r.add(bundle.SeverityError, reason.InputMissing, "", "the object is not in the inputs", "add it: oc get infrastructures.config.openshift.io cluster -o yaml")
		return r.findings
	}
	if !slices.Contains(bundle.Platforms(), c.Platform) {
		r.add(bundle.SeverityError, reason.PlatformUnsupported, "status.platformStatus.type", fmt.Sprintf("%q is not a platform of Windows nodes", c.Platform), "Windows nodes run on AWS, Azure, GCP, VSphere, Nutanix and None")
	}
	if u, err := url.Parse(c.APIServerInternalURL); err != nil || u.Scheme != "https" || u.Host == "" {
		r.add(bundle.SeverityError, reason.InputInvalid, "status.apiServerInternalURI", fmt.Sprintf("%q is not an https URL", c.APIServerInternalURL), "the installer sets it; a copy of the object must keep its status")
	}
	if c.InfrastructureName == "" {
		r.add(bundle.SeverityError, reason.InputInvalid, "status.infrastructureName", "is empty, so the cluster has no identity", "the installer sets it; a copy of the object must keep its status")
	}
	return r.findings
}

func (c Cluster) checkNetwork() bundle.Findings {
	r := report{ref: c.Origins[FromClusterNetwork]}
	if r.ref.IsZero() {
		r.ref = bundle.Ref{Kind: "Network", Name: "cluster"}
		r.add(bundle.SeverityError, reason.InputMissing, "", "the config.openshift.io object is not in the inputs", "add it: oc get networks.config.openshift.io cluster -o yaml")
	} else {
		c.checkServiceNetwork(&r)
	}
	o := report{ref: c.Origins[FromOperatorNetwork]}
	switch {
	case o.ref.IsZero():
		o.ref = bundle.Ref{Kind: "Network", Name: "cluster"}
		o.add(bundle.SeverityError, reason.InputMissing, "", "the operator.openshift.io object is not in the inputs", "add it: oc get networks.operator.openshift.io cluster -o yaml")
	case !c.Network.HybridOverlay:
		o.add(bundle.SeverityError, reason.HybridOverlayMissing, "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig", "the cluster has no hybrid overlay network", overlayDocs)
	case c.Network.HybridOverlayPort < 0 || c.Network.HybridOverlayPort > 65535:
		o.add(bundle.SeverityError, reason.InputInvalid, "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig.hybridOverlayVXLANPort", fmt.Sprintf("%d is not a port", c.Network.HybridOverlayPort), "use a free UDP port from 1 to 65535")
	}
	return append(r.findings, o.findings...)
}

func (c Cluster) checkServiceNetwork(r *report) {
	if c.Network.Type != ovnKubernetes {
		r.add(bundle.SeverityError, reason.NetworkTypeUnsupported, "spec.networkType", fmt.Sprintf("%q cannot have Windows nodes", c.Network.Type), "Windows nodes need OVNKubernetes with the hybrid overlay")
	}
	if len(c.Network.ServiceNetworks) == 0 {
		r.add(bundle.SeverityError, reason.ServiceNetworkMissing, "spec.serviceNetwork", "is empty", "the installer sets it; a copy of the object must keep its spec")
		return
	}
	prefix, err := netip.ParsePrefix(c.Network.ServiceNetworks[0])
	switch {
	case err != nil:
		r.add(bundle.SeverityError, reason.InputInvalid, "spec.serviceNetwork[0]", fmt.Sprintf("%q is not a CIDR", c.Network.ServiceNetworks[0]), "write it as 172.30.0.0/16")
	case !prefix.Addr().Is4():
		r.add(bundle.SeverityError, reason.ServiceNetworkIPv6, "spec.serviceNetwork[0]", fmt.Sprintf("%s is not IPv4", prefix), "Windows nodes need IPv4; in a dual-stack cluster the IPv4 service network comes first")
	case prefix.Bits() > 28:
		r.add(bundle.SeverityError, reason.InputInvalid, "spec.serviceNetwork[0]", fmt.Sprintf("%s has no tenth address for the cluster's DNS", prefix), "use a larger network")
	}
}

func (c Cluster) checkVersion() bundle.Findings {
	r := report{ref: orRef(c.Origins[FromVersion], bundle.Ref{Kind: "ClusterVersion", Name: "version"})}
	if c.Version == "" {
		r.add(bundle.SeverityInfo, reason.ClusterVersionUnknown, "status.desired.version", "whether this version ships for the cluster is not known", "add the object: oc get clusterversions.config.openshift.io version -o yaml")
		return r.findings
	}
	v, err := semver.NewVersion(c.Version)
	if err != nil {
		r.add(bundle.SeverityWarning, reason.ClusterVersionUnsupported, "status.desired.version", fmt.Sprintf("%q is not a version", c.Version), "check the object")
		return r.findings
	}
	minor := fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	var served []string
	for _, s := range payload.ClusterVersions() {
		if s.Cluster == minor {
			return nil
		}
		served = append(served, s.Cluster)
	}
	r.add(bundle.SeverityWarning, reason.ClusterVersionUnsupported, "status.desired.version",
		fmt.Sprintf("%s is outside what this version ships for: kubelet %s serves clusters %s", c.Version, payload.KubernetesVersion, strings.Join(served, " and ")),
		"use the operator of the cluster's version; what is rendered here shows what a node would get, and the operator does not apply it")
	return r.findings
}

// pemText is one text of certificates in the inputs.
type pemText struct {
	origin Origin
	field  string
	text   string
	// made tells that the cluster itself makes the text, so that a copy may hold a dummy.
	made bool
}

func (c Cluster) pemTexts() []pemText {
	texts := []pemText{
		{FromTrustedCA, `data["ca-bundle.crt"]`, c.TrustedCAs, false},
		{FromControllers, "spec.kubeAPIServerServingCAData", c.KubeletClientCA, true},
		{FromBootstrap, `data["ca.crt"]`, c.Bootstrap.CA, true},
		{FromExporterTLS, `data["tls.crt"]`, c.Exporter.Certificate, true},
	}
	for _, ca := range c.RegistryCAs {
		texts = append(texts, pemText{FromControllers, "spec.imageRegistryBundleData[" + ca.Registry + "]", ca.PEM, false})
	}
	return texts
}

// checkCertificates: a text without any certificate stops what reads it; a bad block among good ones is left out.
func (c Cluster) checkCertificates() bundle.Findings {
	all := c.checkPresent()
	for _, t := range c.pemTexts() {
		if t.text == "" || bundle.IsStandIn(t.text) {
			continue
		}
		r := report{ref: c.Origins[t.origin]}
		certs, problems := parsePEM(t.text)
		for _, p := range problems {
			switch {
			case len(certs) > 0:
				r.add(bundle.SeverityWarning, reason.CertificateSkipped, t.field, p+"; the other certificates are used", "remove or correct the block")
			case t.made && c.Copies:
				r.add(bundle.SeverityWarning, reason.CertificateInvalid, t.field, p+"; it is rendered as it is, and no node would work with it", "nothing, if this copy of the object holds a dummy; else look at what made it")
			default:
				r.add(bundle.SeverityError, reason.CertificateInvalid, t.field, p, "the field must hold PEM certificates")
			}
		}
		all = append(all, r.findings...)
	}
	return all
}

// checkPresent tells what a node cannot join without.
func (c Cluster) checkPresent() bundle.Findings {
	var all bundle.Findings
	if c.KubeletClientCA == "" {
		all = append(all, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.InputMissing, Object: orRef(c.Origins[FromControllers], bundle.Ref{Kind: "ControllerConfig", Name: "machine-config-controller"}),
			Field:   "spec.kubeAPIServerServingCAData",
			Message: "there are no CAs whose clients may call the kubelet", Fix: "add the object: oc get controllerconfigs.machineconfiguration.openshift.io machine-config-controller -o yaml",
		})
	}
	if c.Bootstrap.Token.IsZero() || c.Bootstrap.CA == "" {
		all = append(all, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.InputMissing,
			Object:  orRef(c.Origins[FromBootstrap], bundle.Ref{Kind: "Secret", Namespace: "openshift-machine-config-operator", Name: "node-bootstrapper-token"}),
			Message: "there is no token and CA with which a machine becomes a node", Fix: "the machine-config-operator makes the Secret; look at why it is not there",
		})
	}
	return all
}

func orRef(ref, fallback bundle.Ref) bundle.Ref {
	if ref.IsZero() {
		return fallback
	}
	return ref
}

func (c Cluster) checkMachineConfig() bundle.Findings {
	r := report{ref: c.Origins[FromMachineConfig]}
	for _, name := range slices.Sorted(maps.Keys(c.Machine.KubeletFlags)) {
		if !kubeletFlags[name] {
			r.add(bundle.SeverityWarning, reason.KubeletFlagUnknown, "spec.config.systemd.units[kubelet.service]",
				fmt.Sprintf("kubelet %s has no flag --%s: it is left out", payload.KubernetesVersion, name), "nothing, if Windows nodes do not need it; else set the field of the kubelet's configuration in "+SettingsConfigMap)
		}
	}
	if c.Machine.CredentialProvider != "" {
		var config kubeletv1.CredentialProviderConfig
		if err := yaml.UnmarshalStrict([]byte(c.Machine.CredentialProvider), &config); err != nil {
			r.add(bundle.SeverityError, reason.InputInvalid, credentialProviderField, fmt.Sprintf("is not a CredentialProviderConfig: %v", err), "correct the MachineConfig that the file comes from")
		}
		for i, p := range config.Providers {
			// The kubelet runs the name as a program of its folder.
			if err := bundle.CheckName(p.Name); err != nil || strings.Contains(p.Name, " ") {
				r.add(bundle.SeverityError, reason.InputInvalid, fmt.Sprintf("%s.providers[%d].name", credentialProviderField, i), fmt.Sprintf("%q cannot be the name of a program", p.Name), "name a program of the kubelet's folder, without a path")
			}
		}
	}
	return r.findings
}

// checkPauseImage: the default pause image is pulled by tag from a registry that a disconnected cluster cannot reach.
// Whether a mirror covers it is the mirrors' matter; here only its form.
func (c Cluster) checkPauseImage() bundle.Findings {
	if imageReference.MatchString(c.Settings.PauseImage) {
		return nil
	}
	return bundle.Findings{settingsFinding(c.Origins[FromSettings], "pauseImage", fmt.Sprintf("%q is not an image with a tag or digest", c.Settings.PauseImage))}
}

// checkNode judges what is known of one node.
func (c Cluster) checkNode(n Node) bundle.Findings {
	r := report{ref: n.ref()}
	c.checkFacts(n, &r)
	c.checkNames(n, &r)
	for i := range r.findings {
		r.findings[i].Node = n.ID()
	}
	return r.findings
}

// ref is the object that stands for the node, the Node itself first.
func (n Node) ref() bundle.Ref {
	for _, o := range []Origin{FromNode, FromMachine, FromInstances} {
		if ref, ok := n.Origins[o]; ok {
			return ref
		}
	}
	return bundle.Ref{}
}

func (c Cluster) checkFacts(n Node, r *report) {
	if n.Facts.IsZero() {
		r.add(bundle.SeverityInfo, reason.FactsUnknown, "", "nothing is known of the machine itself: this is what it gets to join, as far as objects tell",
			"run `wmco-node facts` on the machine and give the output as --facts")
		return
	}
	checkFactTexts(n.Facts, r)
	if a := n.Address; a != "" && !n.Facts.HasAddress(a) && isIPv4(a) {
		r.add(bundle.SeverityError, reason.FactsMismatch, "", fmt.Sprintf("the facts are of another machine: none of its addresses is %s", a), "give the facts of this machine")
	}
	if port := c.Network.HybridOverlayPort; n.Facts.Build() == build1809 && port != 0 && port != defaultVXLANPort {
		r.add(bundle.SeverityError, reason.VXLANPortUnsupported, "", fmt.Sprintf("Windows Server 2019 (build %d) cannot use VXLAN port %d", build1809, port), "use Windows Server 2022 or later, or the default port 4789")
	}
	if n.Stage() != bundle.StageJoined {
		return
	}
	if !n.networkKnown() || n.sourceVIP() == "" {
		r.add(bundle.SeverityInfo, reason.NetworkPending, "", "the overlay network is not there yet: cni.conf and kube-proxy follow once hybrid-overlay-node has made it",
			"the operator goes on by itself; with wmco apply, apply again when the network is there. If it does not come, look at hybrid-overlay-node's log and the node's k8s.ovn.org/hybrid-overlay-node-subnet annotation")
	}
}

// checkFactTexts: what a machine says of itself goes into flags and files, so it must look like what it says it is.
func checkFactTexts(f bundle.Facts, r *report) {
	invalid := func(field, value, what string) {
		r.add(bundle.SeverityError, reason.FactsInvalid, "facts."+field, fmt.Sprintf("%q is not %s", value, what), "print the facts anew: wmco-node facts")
	}
	for field, name := range map[string]string{"hostName": f.HostName, "dnsSuffix": f.DNSSuffix, "metadataName": f.MetadataName} {
		if name != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
			invalid(field, name, "a DNS name")
		}
	}
	network, vip := f.Network(overlayNetwork), f.Endpoint(vipEndpoint).IP
	if a := network.ManagementIP; a != "" && !isIPv4(a) {
		invalid("networks["+overlayNetwork+"].managementIP", a, "an IPv4 address")
	}
	if a := network.AddressPrefix; a != "" {
		if p, err := netip.ParsePrefix(a); err != nil || !p.Addr().Is4() {
			invalid("networks["+overlayNetwork+"].addressPrefix", a, "an IPv4 subnet")
		}
	}
	if vip != "" && !isIPv4(vip) {
		invalid("endpoints["+vipEndpoint+"].ip", vip, "an IPv4 address")
	}
}

func (c Cluster) checkNames(n Node, r *report) {
	backed := n.Backing == BackingMachine && (c.Platform == bundle.PlatformVSphere || c.Platform == bundle.PlatformNutanix)
	if backed && len(n.MachineName) > MaxComputerName {
		r.add(bundle.SeverityError, reason.MachineNameTooLong, "metadata.name",
			fmt.Sprintf("%q has %d characters, a Windows computer name has at most %d", n.MachineName, len(n.MachineName), MaxComputerName), "give the MachineSet a name of at most 9 characters")
	}
	predicted := n.predictedName(c.Platform)
	if n.Name != "" && predicted != "" && predicted != n.Name {
		r.add(bundle.SeverityWarning, reason.NodeNameMismatch, "", fmt.Sprintf("the machine would register as %q now; it keeps the name %q", predicted, n.Name), "nothing, unless the machine was renamed on purpose: then remove the node and let it join anew")
	}
	if n.Subnet == "" {
		return
	}
	if p, err := netip.ParsePrefix(n.Subnet); err != nil || !p.Addr().Is4() {
		r.add(bundle.SeverityError, reason.InputInvalid, `metadata.annotations["k8s.ovn.org/hybrid-overlay-node-subnet"]`, fmt.Sprintf("%q is not an IPv4 subnet", n.Subnet), "OVN sets it; remove the annotation and look at ovnkube-control-plane's log")
	}
}
