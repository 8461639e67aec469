package render

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
	"wmco/bundle/reason"
)

const (
	ovnKubernetes = "OVNKubernetes"
	// build1809 is Windows Server 2019, whose overlay network cannot use another VXLAN port.
	build1809 = 17763
	// overlayField is where the operator.openshift.io Network configures the hybrid overlay.
	overlayField = "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig"
	// copyStatus and copySpec are the fixes for a field that the installer sets.
	copyStatus = "copy the object with its status, which the installer sets"
	copySpec   = "copy the object with its spec, which the installer sets"
)

// report collects findings about one object.
type report struct {
	findings bundle.Findings
	ref      bundle.Ref
}

func (r *report) addFinding(severity bundle.Severity, why, field, message, fix string) {
	r.findings = append(r.findings, bundle.Finding{Severity: severity, Reason: why, Object: r.ref, Field: field, Message: message, Fix: fix})
}

// checkInputs returns the findings about the cluster's inputs. Inputs with a finding of severity error cannot be
// rendered.
func (c Cluster) checkInputs() bundle.Findings {
	return slices.Concat(
		c.checkInfrastructure(), c.checkNetwork(), c.checkVersion(), c.Proxy.checkValues(c.Origins[FromProxy]),
		c.checkCertificates(), c.checkMachineConfig(), c.checkPauseImage(), c.checkKubeletOverride(), c.checkMaxPods(),
	)
}

func (c Cluster) checkInfrastructure() bundle.Findings {
	r := report{ref: c.Origins[FromInfrastructure]}
	if r.ref.IsZero() {
		r.ref = bundle.Ref{Kind: "Infrastructure", Name: "cluster"}
		r.addFinding(bundle.SeverityError, reason.InputMissing, "", "the object is not in the inputs", "add it: oc get infrastructures.config.openshift.io cluster -o yaml")
		return r.findings
	}
	if !slices.Contains(bundle.Platforms(), c.Platform) {
		r.addFinding(bundle.SeverityError, reason.PlatformUnsupported, "status.platformStatus.type", fmt.Sprintf("platform %q does not support Windows nodes", c.Platform), "use a cluster on AWS, Azure, GCP, VSphere, Nutanix or None")
	}
	if u, err := url.Parse(c.APIServerInternalURL); err != nil || u.Scheme != "https" || u.Host == "" {
		r.addFinding(bundle.SeverityError, reason.InputInvalid, "status.apiServerInternalURI", fmt.Sprintf("%q is not an https URL", c.APIServerInternalURL), copyStatus)
	}
	if c.InfrastructureName == "" {
		r.addFinding(bundle.SeverityError, reason.InputInvalid, "status.infrastructureName", "is empty; it is the identity of the cluster", copyStatus)
	}
	return r.findings
}

func (c Cluster) checkNetwork() bundle.Findings {
	r := report{ref: c.Origins[FromClusterNetwork]}
	if r.ref.IsZero() {
		r.ref = bundle.Ref{Kind: "Network", Name: "cluster"}
		r.addFinding(bundle.SeverityError, reason.InputMissing, "", "the config.openshift.io object is not in the inputs", "add it: oc get networks.config.openshift.io cluster -o yaml")
	} else {
		c.checkServiceNetwork(&r)
		c.checkClassE(&r)
	}
	o := report{ref: c.Origins[FromOperatorNetwork]}
	switch {
	case o.ref.IsZero():
		o.ref = bundle.Ref{Kind: "Network", Name: "cluster"}
		o.addFinding(bundle.SeverityError, reason.InputMissing, "", "the operator.openshift.io object is not in the inputs", "add it: oc get networks.operator.openshift.io cluster -o yaml")
	case !c.Network.HybridOverlay:
		fix := "set " + overlayField + " of the operator.openshift.io Network cluster"
		if c.Platform == bundle.PlatformVSphere {
			fix += " with hybridOverlayVXLANPort, such as 9898: it cannot be changed afterwards, and ESXi and NSX use the default, 4789"
		}
		o.addFinding(bundle.SeverityError, reason.HybridOverlayMissing, overlayField, "the cluster has no hybrid overlay network", fix)
	case len(c.Network.HybridNetworks) == 0:
		o.addFinding(bundle.SeverityError, reason.HybridOverlayMissing, overlayRange, "the hybrid overlay has no network, so Windows nodes get no pod subnet", "add a CIDR and host prefix that no other network of the cluster uses, such as 10.132.0.0/14 and 23")
	default:
		c.checkOverlay(&o)
	}
	return append(r.findings, o.findings...)
}

func (c Cluster) checkServiceNetwork(r *report) {
	if c.Network.Type != ovnKubernetes {
		r.addFinding(bundle.SeverityError, reason.NetworkTypeUnsupported, "spec.networkType", fmt.Sprintf("network type %q does not support Windows nodes", c.Network.Type), "use OVNKubernetes with the hybrid overlay")
	}
	if len(c.Network.ServiceNetworks) == 0 {
		r.addFinding(bundle.SeverityError, reason.ServiceNetworkMissing, "spec.serviceNetwork", "is empty", copySpec)
		return
	}
	prefix, err := netip.ParsePrefix(c.Network.ServiceNetworks[0])
	switch {
	case err != nil:
		r.addFinding(bundle.SeverityError, reason.InputInvalid, "spec.serviceNetwork[0]", fmt.Sprintf("%q is not a CIDR", c.Network.ServiceNetworks[0]), "write it as 172.30.0.0/16")
	case !prefix.Addr().Is4():
		r.addFinding(bundle.SeverityError, reason.ServiceNetworkIPv6, "spec.serviceNetwork[0]", fmt.Sprintf("%s is not IPv4", prefix), "in a dual-stack cluster, list the IPv4 service network first; Windows nodes need IPv4")
	case prefix.Bits() > 28:
		r.addFinding(bundle.SeverityError, reason.InputInvalid, "spec.serviceNetwork[0]", fmt.Sprintf("%s is too small: its tenth address is the cluster's DNS", prefix), "use a larger network")
	}
}

// pemText is a field of the inputs that holds certificates.
type pemText struct {
	origin Origin
	field  string
	text   string
	// made reports whether the cluster itself makes the text. A copy of it may hold a dummy.
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

// checkCertificates reports certificates that cannot be used. A program that reads a field without any certificate does
// not start; an invalid block beside valid ones is skipped.
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
				r.addFinding(bundle.SeverityWarning, reason.CertificateSkipped, t.field, p+"; the other certificates are used", "remove or correct the block")
			case t.made && c.Copies:
				r.addFinding(bundle.SeverityWarning, reason.CertificateInvalid, t.field, p+"; it is rendered unchanged, and no node would work with it", "nothing, if this copy of the object holds a dummy; otherwise correct the object")
			default:
				r.addFinding(bundle.SeverityError, reason.CertificateInvalid, t.field, p, "put PEM certificates into the field")
			}
		}
		all = append(all, r.findings...)
	}
	return all
}

// checkPresent reports missing inputs that a host needs to join.
func (c Cluster) checkPresent() bundle.Findings {
	var all bundle.Findings
	if c.KubeletClientCA == "" {
		all = append(all, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.InputMissing, Object: orRef(c.Origins[FromControllers], bundle.Ref{Kind: "ControllerConfig", Name: "machine-config-controller"}),
			Field:   "spec.kubeAPIServerServingCAData",
			Message: "the CAs of the kubelet's clients are missing", Fix: "add the object: oc get controllerconfigs.machineconfiguration.openshift.io machine-config-controller -o yaml",
		})
	}
	if c.Bootstrap.Token.IsZero() || c.Bootstrap.CA == "" {
		all = append(all, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.InputMissing,
			Object:  orRef(c.Origins[FromBootstrap], bundle.Ref{Kind: "Secret", Namespace: "openshift-machine-config-operator", Name: "node-bootstrapper-token"}),
			Message: "the bootstrap token and CA, with which a host joins the cluster, are missing", Fix: "check why the machine-config-operator has not created the Secret",
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
		if !c.kubeletTable().Flags[name] {
			r.addFinding(bundle.SeverityWarning, reason.KubeletFlagUnknown, "spec.config.systemd.units[kubelet.service]",
				fmt.Sprintf("kubelet %s has no flag --%s: it is left out", c.KubeletVersion(), name), "none, if Windows nodes do not need it; otherwise set the field of the kubelet's configuration in "+SettingsConfigMap)
		}
	}
	c.checkProviders(&r)
	return r.findings
}

// checkPauseImage checks the form of the reference; checkNodeImages checks where the image is pulled from.
func (c Cluster) checkPauseImage() bundle.Findings {
	if err := CheckImage(c.Settings.PauseImage); err != nil {
		return bundle.Findings{settingsFinding(c.Origins[FromSettings], "pauseImage", err.Error())}
	}
	return nil
}

// checkNode returns the findings about one node.
func (c Cluster) checkNode(n Node) bundle.Findings {
	r := report{ref: n.objectRef()}
	c.checkFacts(n, &r)
	c.checkOverlayAddress(n, &r)
	c.checkNames(n, &r)
	for i := range r.findings {
		r.findings[i].Node = n.ID()
	}
	return r.findings
}

// objectRef is the object that stands for the node, the Node itself first.
func (n Node) objectRef() bundle.Ref {
	for _, o := range []Origin{FromNode, FromMachine, FromInstances} {
		if ref, ok := n.Origins[o]; ok {
			return ref
		}
	}
	return bundle.Ref{}
}

func (c Cluster) checkFacts(n Node, r *report) {
	checkFactTexts(n.Facts, r) // also of facts that count as none: a host may leave their schema out
	if n.Facts.IsZero() {
		c.factsUnknown(n, r)
		return
	}
	if a := n.Address; a != "" && !n.Facts.HasAddress(a) && isIPv4(a) {
		r.addFinding(bundle.SeverityError, reason.FactsMismatch, "", fmt.Sprintf("the facts are of another host: none of its addresses is %s", a), "give the facts of this host")
	}
	if why, fix := c.ForeignKubelet(n.Facts); why != "" {
		r.addFinding(bundle.SeverityError, reason.HostOfAnotherCluster, "", why, fix)
	}
	if port := c.Network.HybridOverlayPort; n.Facts.Build() == build1809 && port != 0 && port != defaultVXLANPort {
		r.addFinding(bundle.SeverityError, reason.VXLANPortUnsupported, "", fmt.Sprintf("Windows Server 2019 (build %d) cannot use VXLAN port %d", build1809, port), "use Windows Server 2022 or later, or the default port 4789")
	}
	if n.Stage() != bundle.StageJoined {
		return
	}
	missing := !n.networkKnown() || n.sourceVIP() == ""
	if missing && n.Facts.IsUnknown(bundle.PartNetworks) { // without them, the node would lose what it has
		r.addFinding(bundle.SeverityError, reason.NetworksUnknown, "", fmt.Sprintf("the Host Networking Service of the host does not say which networks it has: %.300q", n.Facts.ErrorOf(bundle.PartNetworks)),
			"none if the finding disappears; the node keeps its published bundle. Otherwise check the service hns on the host, or run wmco reboot NODE")
		return
	}
	if missing {
		r.addFinding(bundle.SeverityInfo, reason.NetworkPending, "", "the overlay network does not exist yet: cni.conf and kube-proxy are added when hybrid-overlay-node has created it",
			"none with the operator, which continues automatically; with wmco apply, apply again when the network exists. If it does not appear, check hybrid-overlay-node's log and the node's k8s.ovn.org/hybrid-overlay-node-subnet annotation")
	}
}

// ForeignKubelet returns why a host with these facts is not changed because its kubelet belongs to another cluster, and
// what to do. Both are empty where it does not.
func (c Cluster) ForeignKubelet(f bundle.Facts) (why, fix string) {
	if c.APIServerInternalURL == "" {
		return "", ""
	}
	return f.Kubelet.BelongsElsewhere([]string{c.APIServerInternalURL}, c.Bootstrap.CA)
}

// factsUnknown lists what waits for the facts of a host.
func (c Cluster) factsUnknown(n Node, r *report) {
	message := "the facts of the host are not known: this is its join-stage bundle, rendered from objects alone"
	if n.Incomplete() {
		message = "the facts of the host are not known, so its bundle is incomplete and cannot be applied: " + strings.Join(c.waitingForFacts(n), "; ")
	}
	r.addFinding(bundle.SeverityInfo, reason.FactsUnknown, "", message, "run `wmco-node facts` on the host and give the output as --facts")
}

// waitingForFacts lists what of a node's bundle is left out or may change until the facts of its host are known.
func (c Cluster) waitingForFacts(n Node) []string {
	list := []string{"cni.conf, kube-proxy.conf and the service kube-proxy are left out"}
	if !n.givenIP(c.Platform) {
		list = append(list, "the kubelet's --node-ip is an address of the Node, not that of the host's default route")
	}
	return list
}

// checkFactTexts checks the form of the facts that the host reports, because they become flags and parts of files.
func checkFactTexts(f bundle.Facts, r *report) {
	invalid := func(field, value, what string) {
		r.addFinding(bundle.SeverityError, reason.FactsInvalid, "facts."+field, fmt.Sprintf("%q is not %s", value, what), "if you edited the file of --facts, write it again with wmco-node facts; otherwise correct the value on the host")
	}
	for field, name := range map[string]string{"hostName": f.HostName, "dnsSuffix": f.DNSSuffix, "metadataName": bundle.FirstName(f.MetadataName)} {
		if name != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
			invalid(field, name, "a DNS name")
		}
	}
	if f.ProviderID != "" && !providerID.MatchString(f.ProviderID) {
		invalid("providerID", f.ProviderID, "a valid providerID")
	}
	network, vip := f.Network(overlayNetwork), f.Endpoint(vipEndpoint).IP
	if a := network.ManagementIP; a != "" && !isIPv4(a) {
		invalid("networks["+overlayNetwork+"].managementIP", a, "an IPv4 address")
	}
	if a := network.AddressPrefix; a != "" {
		if !isIPv4Subnet(a) {
			invalid("networks["+overlayNetwork+"].addressPrefix", a, "an IPv4 subnet")
		}
	}
	if vip != "" && !isIPv4(vip) {
		invalid("endpoints["+vipEndpoint+"].ip", vip, "an IPv4 address")
	}
}

// providerID is the form of what the cloud controllers of these platforms read (Node.spec.providerID). Those of Azure
// are the longest, some 300 characters. A host that reports a longer one would have its layer outgrow the annotation of
// its Node: each value would be a Secret of its own.
var providerID = regexp.MustCompile(`^[a-z]{1,20}://[A-Za-z0-9/_.-]{1,500}$`)

func (c Cluster) checkNames(n Node, r *report) {
	c.checkCloudName(n, r)
	backed := n.Backing == BackingMachine && (c.Platform == bundle.PlatformVSphere || c.Platform == bundle.PlatformNutanix)
	if backed && len(n.MachineName) > MaxComputerName {
		r.addFinding(bundle.SeverityError, reason.MachineNameTooLong, "metadata.name",
			fmt.Sprintf("%q has %d characters, a Windows computer name has at most %d", n.MachineName, len(n.MachineName), MaxComputerName), fmt.Sprintf("give the MachineSet a name of at most %d characters", MaxComputerName-MachineSuffix))
	}
	predicted := n.predictedName(c.Platform)
	if n.Name != "" && predicted != "" && predicted != n.Name {
		r.addFinding(bundle.SeverityWarning, reason.NodeNameMismatch, "", fmt.Sprintf("the host would register as %q now; the node keeps the name %q", predicted, n.Name), "none, unless the host was renamed on purpose: then remove the node and let it join again")
	}
	if n.Subnet != "" && !isIPv4Subnet(n.Subnet) {
		r.addFinding(bundle.SeverityError, reason.InputInvalid, `metadata.annotations["k8s.ovn.org/hybrid-overlay-node-subnet"]`, fmt.Sprintf("%q is not an IPv4 subnet", n.Subnet), "remove the annotation, which OVN sets, and check ovnkube-control-plane's log")
	}
}

// checkCloudName checks the name that a cloud reports for a host. A host that joins without it would register under the name of its
// computer, which the cloud controller does not know.
func (c Cluster) checkCloudName(n Node, r *report) {
	fromCloud := c.Platform == bundle.PlatformAWS || c.Platform == bundle.PlatformGCP
	if fromCloud && n.Stage() == bundle.StageJoin && !n.Facts.IsZero() && n.predictedName(c.Platform) == "" {
		r.addFinding(bundle.SeverityError, reason.NodeNameUnknown, "facts.metadataName", "the instance metadata of the cloud does not tell the name of the host, and its kubelet would register under another one",
			"turn on the instance metadata of the host, and check on it that http://169.254.169.254 is reached without a proxy")
	}
	if n.ProviderID != "" && !providerID.MatchString(n.ProviderID) {
		r.addFinding(bundle.SeverityError, reason.InputInvalid, "spec.providerID", fmt.Sprintf("%q is not the identity of an instance", n.ProviderID), "correct the Machine: its controller sets the field")
	}
}
