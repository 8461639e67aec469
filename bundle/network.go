package bundle

import (
	"fmt"
	"net/netip"
)

// checkRoute accepts a route as Windows shows it, so that one route has one name.
func checkRoute(r Route) error {
	p, err := netip.ParsePrefix(r.Destination)
	if err != nil || !p.Addr().Is4() || p != p.Masked() {
		return fmt.Errorf("destination: %q is not an IPv4 network such as 10.0.0.0/8", r.Destination)
	}
	if r.Via == ViaDefault {
		return nil
	}
	if a, err := netip.ParseAddr(r.Via); err != nil || !a.Is4() {
		return fmt.Errorf("via: %q is neither an IPv4 address nor %s", r.Via, ViaDefault)
	}
	return nil
}

const maxPort = 65535

func checkFirewall(r FirewallRule) error {
	if r.Protocol != "TCP" && r.Protocol != "UDP" {
		return fmt.Errorf("protocol: %q is neither TCP nor UDP", r.Protocol)
	}
	if r.Port < 1 || r.Port > maxPort {
		return fmt.Errorf("port: %d is not from 1 to %d", r.Port, maxPort)
	}
	return nil
}
