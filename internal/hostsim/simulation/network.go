package simulation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// readRoute returns bundle.ViaDefault for a route to the next hop of the default route, however it was set.
func readRoute(s *State, x plan.Setting) plan.Setting {
	x = readKept(s, x)
	if x.Present && x.Value == s.Facts.DefaultRoute.Gateway {
		x.Value = bundle.ViaDefault
	}
	return x
}

func setRoute(s *State, x plan.Setting) error {
	if _, err := netip.ParsePrefix(x.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidParameter, err)
	}
	if x.Value == bundle.ViaDefault {
		x.Value = s.Facts.DefaultRoute.Gateway
	}
	if _, err := netip.ParseAddr(x.Value); err != nil {
		return fmt.Errorf("%w: the next hop: %w", ErrInvalidParameter, err)
	}
	s.Put(x)
	return nil
}

// setEndpoint makes an endpoint on an HNS network that exists.
func setEndpoint(s *State, x plan.Setting) error {
	network, compartment, ok := strings.Cut(x.Value, "/")
	if !ok || strings.Trim(compartment, "0123456789") != "" {
		return fmt.Errorf("%w: %s is not network/compartment", ErrInvalidParameter, x.Value)
	}
	if s.Facts.Network(network).Name == "" {
		return fmt.Errorf("%w: %w: the network %s", applier.ErrNoSetting, ErrNotFound, network)
	}
	s.Put(x)
	return nil
}

func readNetwork(s *State, x plan.Setting) plan.Setting {
	x.Present = s.Facts.Network(x.Name).Name != ""
	return x
}

// unsetNetwork removes an HNS network with its endpoints.
func unsetNetwork(s *State, x plan.Setting) error {
	s.Facts.Networks = slices.DeleteFunc(slices.Clone(s.Facts.Networks), func(n bundle.HNSNetwork) bool { return n.Name == x.Name })
	for key, e := range s.Settings {
		if e.Kind == bundle.KindEndpoint && endpointNetwork(e) == x.Name {
			delete(s.Settings, key)
		}
	}
	return nil
}

func endpointNetwork(e plan.Setting) string {
	network, _, _ := strings.Cut(e.Value, "/")
	return network
}

// endpoints returns the HNS endpoints by name. Their addresses follow those of the network and its gateway.
func (s *State) endpoints() []bundle.HNSEndpoint {
	var all []bundle.HNSEndpoint
	for _, e := range s.Settings {
		if e.Kind == bundle.KindEndpoint {
			all = append(all, bundle.HNSEndpoint{Name: e.Name, Network: endpointNetwork(e)})
		}
	}
	slices.SortFunc(all, func(a, b bundle.HNSEndpoint) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].IP = addressIn(s.Facts.Network(all[i].Network).AddressPrefix, i+2)
	}
	return all
}

// addressIn returns the n-th address of a network, empty if the network is smaller.
func addressIn(network string, n int) string {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return ""
	}
	a := prefix.Masked().Addr()
	for range n {
		a = a.Next()
	}
	if !prefix.Contains(a) {
		return ""
	}
	return a.String()
}
