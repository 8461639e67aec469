package networks

import (
	"net/netip"
	"slices"

	"wmco/applier/winhost/settings"
	"wmco/bundle"
)

// Keepers returns the Keepers of routes, HNS networks and HNS endpoints.
func Keepers() settings.Keepers {
	return settings.Keepers{
		bundle.KindRoute:    routeKeeper{activeRoutes{}, persistentRoutes{}},
		bundle.KindNetwork:  networkKeeper{hns{}},
		bundle.KindEndpoint: endpointKeeper{hns{}, hns{}},
	}
}

// Facts sets the addresses, the default route, and the networks and endpoints of HNS if the host has it.
func Facts(f *bundle.Facts) error {
	if err := addressFacts(f); err != nil {
		return err
	}
	return settings.IgnoreNoSetting(hnsFacts(f))
}

func addressFacts(f *bundle.Facts) error {
	own, err := listAdapters()
	if err != nil {
		return err
	}
	table, err := activeRoutes{}.listRoutes()
	if err != nil {
		return err
	}
	all := adapterAddresses(own)
	slices.SortFunc(all, netip.Addr.Compare)
	f.Addresses = make([]string, len(all))
	for i, a := range all {
		f.Addresses[i] = a.String()
	}
	gateway, ok := defaultRoute(table)
	for _, a := range own {
		if ok && a.index == gateway.Interface && len(a.addresses) > 0 {
			f.DefaultRoute = bundle.DefaultRoute{Address: a.addresses[0].String(), Gateway: gateway.Via.String()}
		}
	}
	return nil
}

func hnsFacts(f *bundle.Facts) error {
	list, err := hns{}.listNetworks()
	if err != nil {
		return err
	}
	for _, n := range list {
		f.Networks = append(f.Networks, n.HNSNetwork)
	}
	ends, err := hns{}.listEndpoints()
	for _, e := range ends {
		f.Endpoints = append(f.Endpoints, e.HNSEndpoint)
	}
	return err
}
