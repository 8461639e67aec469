package networks

import (
	"net/netip"
	"slices"

	"wmco/applier/winhost/settings"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// Host has the networks of this host.
type Host struct{ hns hostNetworks }

// New opens nothing.
func New() Host {
	return Host{limited{hns{}, wait.NewCalls("the Host Networking Service", answerLimit)}}
}

// Keepers returns the Keepers of routes, HNS networks and HNS endpoints.
func (h Host) Keepers() settings.Keepers {
	return settings.Keepers{
		bundle.KindRoute:    routeKeeper{activeRoutes{}, persistentRoutes{}},
		bundle.KindNetwork:  networkKeeper{h.hns},
		bundle.KindEndpoint: endpointKeeper{h.hns, h.hns},
	}
}

// Facts sets the addresses, the default route, and the networks and endpoints of HNS if the host has it. Where it does
// not answer, they are unknown.
func (h Host) Facts(f *bundle.Facts) error {
	if err := addressFacts(f); err != nil {
		return err
	}
	if err := settings.IgnoreNoSetting(h.hnsFacts(f)); err != nil {
		f.Networks, f.Endpoints = nil, nil
		f.Unknown = append(f.Unknown, bundle.UnknownFact{Part: bundle.PartNetworks, Error: err.Error()})
	}
	return nil
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

func (h Host) hnsFacts(f *bundle.Facts) error {
	list, err := h.hns.listNetworks()
	if err != nil {
		return err
	}
	for _, n := range list {
		f.Networks = append(f.Networks, n.HNSNetwork)
	}
	ends, err := h.hns.listEndpoints()
	for _, e := range ends {
		f.Endpoints = append(f.Endpoints, e.HNSEndpoint)
	}
	return err
}
