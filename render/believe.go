package render

import (
	"fmt"
	"net/netip"
	"slices"

	"wmco/bundle"
)

// Contradiction returns a reported fact that cannot be of the Node's host, judged without the report; empty
// if there is none. It checks the rendered facts. Own are the addresses of the host.
//
// The overlay network works over the address that the Node announces: others send to it, and the host sends from the
// network's (ovn-org/ovn-kubernetes, go-controller/hybrid-overlay/pkg/controller). Its prefix is the subnet that OVN
// has given the Node (the same, initSelf). Who may patch Nodes may write that annotation too: it has to be in the
// network of which OVN gives subnets.
func (n Node) Contradiction(f bundle.Facts, c Cluster, own []string) string {
	isOwn := func(a string) bool { return a == "" || slices.Contains(own, a) }
	network := f.Network(overlayNetwork)
	switch {
	case !n.givenIP(c.Platform) && !isOwn(f.DefaultRoute.Address):
		return fmt.Sprintf("the host is not known to have the address of its default route, %s", f.DefaultRoute.Address)
	case !isOwn(network.ManagementIP):
		return fmt.Sprintf("the host is not known to have the address of its overlay network, %s", network.ManagementIP)
	case n.Subnet != "" && !isIPv4Subnet(n.Subnet):
		return "" // the bundle is refused because of it
	case network.AddressPrefix != "" && network.AddressPrefix != n.Subnet:
		return fmt.Sprintf("the overlay network has the subnet %q, and OVN has given the node %q", network.AddressPrefix, n.Subnet)
	case network.Name != "" && !n.hasOverlaySubnet(c):
		return fmt.Sprintf("the subnet %s of the node is not one of the hybrid overlay (%v)", n.Subnet, c.Network.HybridNetworks)
	}
	if vip := f.Endpoint(vipEndpoint).IP; vip != "" && !isWithin(vip, n.Subnet) {
		return fmt.Sprintf("the address of the endpoint %s, %s, is not in the subnet of the node, %q", vipEndpoint, vip, n.Subnet)
	}
	return ""
}

// hasOverlaySubnet reports whether the subnet of the node is a part of a network of which OVN gives subnets. One that
// is not known is believed.
func (n Node) hasOverlaySubnet(c Cluster) bool {
	return n.Subnet == "" || len(c.Network.HybridNetworks) == 0 || slices.ContainsFunc(c.Network.HybridNetworks, func(cidr string) bool {
		whole, err := netip.ParsePrefix(cidr)
		part, wrong := netip.ParsePrefix(n.Subnet)
		return err == nil && wrong == nil && whole.Bits() <= part.Bits() && whole.Contains(part.Addr())
	})
}

func isWithin(address, cidr string) bool {
	a, err := netip.ParseAddr(address)
	p, wrong := netip.ParsePrefix(cidr)
	return err == nil && wrong == nil && p.Contains(a)
}
