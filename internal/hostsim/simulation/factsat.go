package simulation

import (
	"slices"

	"wmco/bundle"
)

// FactsAt returns the facts of another host of the same kind: with its own name, its one address, and an overlay
// network with the subnet of its Node.
func FactsAt(f bundle.Facts, name, address, subnet string) bundle.Facts {
	f.HostName, f.Addresses, f.DefaultRoute.Address = name, []string{address}, address
	f.Networks, f.Endpoints = slices.Clone(f.Networks), slices.Clone(f.Endpoints)
	for i, n := range f.Networks {
		if n.ManagementIP != "" {
			f.Networks[i].AddressPrefix, f.Networks[i].ManagementIP = subnet, address
		}
	}
	for i := range f.Endpoints {
		f.Endpoints[i].IP = addressIn(subnet, i+2)
	}
	return f
}
