package bundle

import "testing"

func TestFactsHaveLimits(t *testing.T) {
	most := Facts{Addresses: make([]string, maxFactAddresses), Networks: make([]HNSNetwork, maxFactNetworks), Endpoints: make([]HNSEndpoint, maxFactEndpoints)}
	addresses, networks, endpoints := most, most, most
	addresses.Addresses = make([]string, maxFactAddresses+1)
	networks.Networks = make([]HNSNetwork, maxFactNetworks+1)
	endpoints.Endpoints = make([]HNSEndpoint, maxFactEndpoints+1)
	for want, f := range map[string]Facts{
		"": most, "there are 513 addresses, at most 512 are allowed": addresses, "there are 65 networks, at most 64 are allowed": networks,
		"there are 4097 endpoints, at most 4096 are allowed": endpoints,
	} {
		if got := f.ExceedsLimit(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
