package render

import (
	"cmp"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
)

// nodeIP returns the address that the kubelet announces: that of the default IPv4 route, or the host's address if the
// user or Nutanix gave it. Empty leaves the choice to the kubelet.
func (n Node) nodeIP(p bundle.Platform) string {
	if n.givenIP(p) {
		return n.Address
	}
	if ip := n.Facts.DefaultRoute.Address; ip != "" {
		return ip
	}
	for _, a := range append([]string{n.Address}, n.Addresses...) {
		if isIPv4(a) {
			return a
		}
	}
	return ""
}

// givenIP reports whether the user or Nutanix gave the address that the kubelet announces.
func (n Node) givenIP(p bundle.Platform) bool {
	return (p == bundle.PlatformNutanix || n.Backing == BackingInstance) && isIPv4(n.Address)
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv4Subnet(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p.Addr().Is4()
}

// hostNameOverride returns the name that the kubelet registers under if it is not the host's own name. A node that
// exists keeps its name, whatever the facts are: with another name, the host would become another node.
func (n Node) hostNameOverride(p bundle.Platform) string {
	if !overridesHostName(p) {
		return ""
	}
	return cmp.Or(n.Name, n.predictedName(p))
}

// overridesHostName reports whether the nodes of a platform have another name than their hosts.
func overridesHostName(p bundle.Platform) bool {
	return p == bundle.PlatformAWS || p == bundle.PlatformGCP || p == bundle.PlatformVSphere
}

// predictedName returns the name that a host would register under, on a platform that overrides it; empty if it is not
// known yet.
func (n Node) predictedName(p bundle.Platform) string {
	switch p {
	case bundle.PlatformAWS:
		return cmp.Or(bundle.FirstName(n.Facts.MetadataName), n.objectName())
	case bundle.PlatformGCP:
		return shortenGCP(cmp.Or(bundle.FirstName(n.Facts.MetadataName), n.objectName()))
	case bundle.PlatformVSphere:
		name := cmp.Or(n.MachineName, n.Facts.HostName)
		if name == "" || n.Facts.DNSSuffix == "" {
			return ""
		}
		return strings.ToLower(name + "." + n.Facts.DNSSuffix)
	case bundle.PlatformAzure, bundle.PlatformNutanix, bundle.PlatformNone:
		return ""
	}
	return ""
}

// objectName returns the first host name among the Machine's addresses, for a host without facts.
func (n Node) objectName() string {
	if n.Backing != BackingMachine || len(n.HostNames) == 0 {
		return ""
	}
	return n.HostNames[0]
}

// providerID returns the identity in the cloud with which the kubelet registers its Node: on AWS, where the cloud
// controller finds an instance by the name of its Node only if that is the private DNS name
// (github.com/openshift/machine-config-operator, aws-kubelet-providerid). On other platforms, kubelets on Linux get
// none.
func (n Node) providerID(p bundle.Platform) string {
	if p != bundle.PlatformAWS {
		return ""
	}
	return cmp.Or(n.ProviderID, n.Facts.ProviderID)
}

// shortenGCP shortens a name that is too long for the label kubernetes.io/hostname as the GCP cloud provider does: at
// the first dot, else at the longest value of a label.
func shortenGCP(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	short, _, _ := strings.Cut(name, ".")
	return short[:min(len(short), validation.LabelValueMaxLength)]
}

// KubernetesName returns the name that the node has, or will have as far as is known.
func (n Node) KubernetesName(p bundle.Platform) string {
	return cmp.Or(n.Name, n.hostNameOverride(p), strings.ToLower(n.Facts.HostName))
}

// MaxComputerName is the longest NetBIOS name. The name of a Machine that becomes its computer's name must fit
// (learn.microsoft.com/windows/win32/sysinfo/computer-names).
const MaxComputerName = 15

// MachineSuffix is the number of characters that the Machine API adds to a MachineSet's name for a Machine: "-" and
// five others.
const MachineSuffix = 6

// requiredName returns the name that the computer must have; empty if it keeps its own.
func (n Node) requiredName(p bundle.Platform) string {
	if n.Backing != BackingMachine || (p != bundle.PlatformVSphere && p != bundle.PlatformNutanix) ||
		len(n.MachineName) > MaxComputerName {
		return ""
	}
	return n.MachineName
}
