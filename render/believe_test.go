package render

import (
	"testing"

	"wmco/bundle"
)

// TestTheSubnetOfANodeIsInANetworkOfTheOverlay: who may patch Nodes may write any subnet.
func TestTheSubnetOfANodeIsInANetworkOfTheOverlay(t *testing.T) {
	var c Cluster
	c.Network.HybridNetworks = []string{"10.132.0.0/14", "10.136.0.0/16"}
	for subnet, want := range map[string]bool{
		"10.132.1.0/24": true, "10.136.2.0/24": true, "10.132.0.0/14": true,
		"10.132.0.0/13": false, "10.132.0.0/0": false, "10.140.0.0/24": false,
	} {
		f := bundle.Facts{Networks: []bundle.HNSNetwork{{Name: overlayNetwork, AddressPrefix: subnet}}}
		if why := (Node{Subnet: subnet}).Contradiction(f, c, nil); (why == "") != want {
			t.Errorf("%s: %q", subnet, why)
		}
	}
}
