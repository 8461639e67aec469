package render

import (
	"cmp"
	"fmt"
	"net/netip"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/bundle"
	"wmco/bundle/reason"
)

const (
	// overlayRange is the field of the networks of the hybrid overlay.
	overlayRange = overlayField + ".hybridClusterNetwork"
	overlayPort  = overlayField + ".hybridOverlayVXLANPort"
	// defaultHostPrefix and defaultGenevePort are OpenShift's.
	defaultHostPrefix = 23
	defaultGenevePort = 6081
	// takenAddresses are those of a node's subnet that no Pod gets: its first and its last one, the gateway, the host,
	// and the source address of kube-proxy.
	takenAddresses = 5
	useOtherRange  = "give the hybrid overlay a range that no network of the cluster and no machine uses, such as 10.132.0.0/14"
)

// checkOverlay returns findings about the ranges and the port of the hybrid overlay.
func (c Cluster) checkOverlay(r *report) {
	n := c.Network
	switch port := cmp.Or(n.HybridOverlayPort, defaultVXLANPort); {
	case port < 0 || port > 65535:
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, overlayPort, fmt.Sprintf("%d is not a port", port),
			"use a free UDP port from 1 to 65535",
		)
	case port == cmp.Or(n.GenevePort, defaultGenevePort):
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, overlayPort,
			fmt.Sprintf("%d is the port of Geneve, by which Linux nodes reach each other", port),
			"use another UDP port, such as 9898",
		)
	case port == defaultVXLANPort && c.Platform == bundle.PlatformVSphere:
		r.addFinding(bundle.SeverityWarning, reason.VXLANPortOnVSphere, overlayPort, "is 4789, which ESXi and NSX use for themselves: packets between Pods on different hosts can be lost",
			"set another port, such as 9898, together with the hybrid overlay: it cannot be changed in a cluster "+
				"that has one (docs/platforms/vsphere.md)")
	}
	haveIPv4 := false
	for i := range n.HybridNetworks {
		haveIPv4 = c.checkHybridNetwork(r, i) || haveIPv4
	}
	if !haveIPv4 {
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, overlayRange,
			"has no IPv4 network, and Pods on Windows nodes have IPv4 addresses only", useOtherRange,
		)
	}
}

// checkHybridNetwork returns false for a network of IPv6.
func (c Cluster) checkHybridNetwork(r *report, i int) bool {
	field, hostPrefix := fmt.Sprintf("%s[%d]", overlayRange, i), c.hostPrefix(i)
	prefix, err := netip.ParsePrefix(c.Network.HybridNetworks[i])
	switch {
	case err != nil:
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, field+".cidr",
			fmt.Sprintf("%q is not a CIDR", c.Network.HybridNetworks[i]), "write it as 10.132.0.0/14",
		)
	case !prefix.Addr().Is4():
		return false
	case isClassE(prefix):
		r.addFinding(
			bundle.SeverityError, reason.ClassENetwork, field+".cidr",
			fmt.Sprintf("%s is in 240.0.0.0/4, which Windows cannot use", prefix), useOtherRange,
		)
	case hostPrefix < prefix.Bits():
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, field+".hostPrefix",
			fmt.Sprintf("%d is shorter than the prefix of %s: no node gets a subnet", hostPrefix, prefix),
			"use a longer prefix, such as 23, or a larger network",
		)
	case podAddresses(hostPrefix) < 1:
		r.addFinding(
			bundle.SeverityError, reason.InputInvalid, field+".hostPrefix",
			fmt.Sprintf("%d leaves no address for Pods in the subnet of a node", hostPrefix),
			"use a shorter prefix, such as 23",
		)
	}
	c.checkOverlaps(r, field+".cidr", prefix)
	return true
}

func (c Cluster) checkOverlaps(r *report, field string, hybrid netip.Prefix) {
	for _, other := range []struct {
		name     string
		cidrs    []string
		severity bundle.Severity
	}{
		{"the cluster network", c.Network.ClusterNetworks, bundle.SeverityError},
		{"the service network", c.Network.ServiceNetworks, bundle.SeverityError},
		{"the network that OVN-Kubernetes uses inside", c.Network.JoinNetworks, bundle.SeverityError},
		{"the network of the machines", c.Network.MachineNetworks, bundle.SeverityError},
		// Machines need not use all of it, and may have others since.
		{"the network of the machines that the installer was given", c.Network.InstalledNetworks, bundle.SeverityWarning},
	} {
		for _, cidr := range other.cidrs {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Overlaps(hybrid) {
				r.addFinding(
					other.severity, reason.HybridOverlayOverlaps, field,
					fmt.Sprintf("%s overlaps %s of %s", hybrid, p, other.name), useOtherRange,
				)
			}
		}
	}
}

// hostPrefix is the length of the prefix of a node's subnet in that hybrid network.
func (c Cluster) hostPrefix(i int) int {
	if i >= len(c.Network.HybridHostPrefixes) {
		return defaultHostPrefix
	}
	return cmp.Or(c.Network.HybridHostPrefixes[i], defaultHostPrefix)
}

// podAddresses is the number of addresses for Pods in a node's subnet.
func podAddresses(hostPrefix int) int {
	const bits = 32
	return 1<<max(bits-hostPrefix, 0) - takenAddresses
}

// checkClassE returns findings about networks of Linux Pods and of Services that Windows cannot reach.
func (c Cluster) checkClassE(r *report) {
	for _, networks := range []struct {
		field string
		cidrs []string
	}{{"spec.clusterNetwork[%d].cidr", c.Network.ClusterNetworks}, {"spec.serviceNetwork[%d]", c.Network.ServiceNetworks}} {
		for i, cidr := range networks.cidrs {
			if p, err := netip.ParsePrefix(cidr); err == nil && isClassE(p) {
				r.addFinding(
					bundle.SeverityError, reason.ClassENetwork, fmt.Sprintf(networks.field, i),
					fmt.Sprintf("%s is in 240.0.0.0/4, which Windows cannot use", p),
					"install the cluster with another range: this one cannot be changed",
				)
			}
		}
	}
}

func isClassE(p netip.Prefix) bool { return p.Overlaps(netip.MustParsePrefix("240.0.0.0/4")) }

// checkOverlayAddress returns a finding for a node whose own address is in a range of the hybrid overlay.
func (c Cluster) checkOverlayAddress(n Node, r *report) {
	for _, cidr := range c.Network.HybridNetworks {
		if isWithin(n.Address, cidr) {
			r.addFinding(
				bundle.SeverityError, reason.HybridOverlayOverlaps, "",
				fmt.Sprintf("the address %s of the node is in %s of the hybrid overlay", n.Address, cidr),
				useOtherRange,
			)
		}
	}
}

// checkMaxPods returns a finding where more Pods are asked for than there are addresses.
func (c Cluster) checkMaxPods() bundle.Findings {
	config, err := overrideKubelet(kubeletv1beta1.KubeletConfiguration{MaxPods: ownMaxPods}, c.Settings.Kubelet)
	if err != nil || c.maxPods(config.MaxPods) == config.MaxPods {
		return nil
	}
	r := report{ref: c.Origins[FromOperatorNetwork]}
	most := c.mostPods()
	r.addFinding(bundle.SeverityWarning, reason.MaxPodsLowered, overlayRange, fmt.Sprintf(
		"the subnet of a node has %d addresses for Pods, so kubelets have maxPods %d and not %d", most, most,
		config.MaxPods,
	),
		fmt.Sprintf("set kubelet.maxPods to %d or less in %s; more Pods need a shorter hostPrefix", most, SettingsConfigMap))
	return r.findings
}

// maxPods is the number of Pods that a kubelet accepts if this one is asked for.
func (c Cluster) maxPods(asked int32) int32 {
	const kubeletsDefault = 110
	if most := c.mostPods(); int(cmp.Or(asked, kubeletsDefault)) > most {
		return int32(most) //nolint:gosec // less than another int32
	}
	return asked
}

// mostPods is the number of addresses for Pods on each node. Networks with which no node is rendered do not count.
func (c Cluster) mostPods() int {
	most := podAddresses(0)
	for i, cidr := range c.Network.HybridNetworks {
		if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is4() {
			most = min(most, max(podAddresses(c.hostPrefix(i)), 1))
		}
	}
	return most
}
