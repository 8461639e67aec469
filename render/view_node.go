package render

import (
	"net/netip"
	"strings"
)

// nodeIP is the address that the kubelet announces: that of the default IPv4 route; where the user or Nutanix gave the
// machine's address, that one. Empty leaves the choice to the kubelet.
func (n Node) nodeIP(p Platform) string {
	given := p == Nutanix || n.Backing == BackingInstance
	if given && isIPv4(n.Address) {
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

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

// hostNameOverride is the name that the kubelet registers under where it is not the machine's own. A node that exists
// keeps its name whatever the machine says now: another name would make it another node.
func (n Node) hostNameOverride(p Platform) string {
	predicted := n.predictedName(p)
	if n.Name != "" && predicted != "" {
		return n.Name
	}
	return predicted
}

func (n Node) predictedName(p Platform) string {
	switch p {
	case AWS:
		return firstNonEmpty(n.Facts.MetadataName, n.objectName())
	case GCP:
		return shortenGCP(firstNonEmpty(n.Facts.MetadataName, n.objectName()))
	case VSphere:
		name := firstNonEmpty(n.MachineName, n.Facts.HostName)
		if name == "" || n.Facts.DNSSuffix == "" {
			return ""
		}
		return strings.ToLower(name + "." + n.Facts.DNSSuffix)
	case Azure, Nutanix, None:
		return ""
	}
	return ""
}

// objectName is the first host name that the Machine's addresses tell, without facts of the machine itself.
func (n Node) objectName() string {
	if n.Backing != BackingMachine || len(n.HostNames) == 0 {
		return ""
	}
	return n.HostNames[0]
}

// maxLabel is the longest value of a label, which the name of a node becomes (kubernetes.io/hostname).
const maxLabel = 63

// shortenGCP does to a long name what the GCP cloud provider does: cut at the first dot, else at 63 characters.
func shortenGCP(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	short, _, _ := strings.Cut(name, ".")
	return short[:min(len(short), maxLabel)]
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// kubernetesName is the name that the node has, or will have as far as it is known.
func (n Node) kubernetesName(p Platform) string {
	return firstNonEmpty(n.Name, n.hostNameOverride(p), strings.ToLower(n.Facts.HostName))
}

// maxComputerName is the longest NetBIOS name, which a renamed Windows machine must fit
// (learn.microsoft.com/windows/win32/sysinfo/computer-names).
const maxComputerName = 15

// renamed tells the name that the machine itself must have; empty where it keeps its own.
func (n Node) renamed(p Platform) string {
	if n.Backing != BackingMachine || (p != VSphere && p != Nutanix) || len(n.MachineName) > maxComputerName {
		return ""
	}
	return n.MachineName
}
