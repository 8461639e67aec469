package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestRangesOfTheHybridOverlay that OVN-Kubernetes refuses or that Windows cannot use.
func TestRangesOfTheHybridOverlay(t *testing.T) {
	const cidr, prefix, port = overlayRange + "[0].cidr", overlayRange + "[0].hostPrefix", overlayPort
	for name, tt := range map[string]struct {
		change func(*Cluster)
		want   []string
	}{
		"a range of its own":         {func(*Cluster) {}, nil},
		"a part of the Pods' range":  {hybrid("10.128.0.0/16", 23), []string{"error HybridOverlayOverlaps " + cidr}},
		"the range of Services":      {hybrid("172.30.0.0/16", 23), []string{"error HybridOverlayOverlaps " + cidr}},
		"around the join network":    {hybrid("100.0.0.0/8", 23), []string{"error HybridOverlayOverlaps " + cidr}},
		"the range of machines":      {hybrid("192.168.0.0/20", 23), []string{"error HybridOverlayOverlaps " + cidr}},
		"the range of the installer": {hybrid("10.9.128.0/17", 23), []string{"warning HybridOverlayOverlaps " + cidr}},
		"class E":                    {hybrid("240.1.0.0/16", 23), []string{"error ClassENetwork " + cidr}},
		"no CIDR":                    {hybrid("10.132.0.0", 23), []string{"error InputInvalid " + cidr}},
		"IPv6 alone":                 {hybrid("fd01::/48", 64), []string{"error InputInvalid " + overlayRange}},
		"IPv6 beside IPv4":           {func(c *Cluster) { c.Network.HybridNetworks = append(c.Network.HybridNetworks, "fd01::/48") }, nil},
		"a network below its prefix": {hybrid("10.132.0.0/24", 23), []string{"error InputInvalid " + prefix}},
		"the default prefix":         {hybrid("10.132.0.0/24", 0), []string{"error InputInvalid " + prefix}},
		"a network of one node":      {hybrid("10.132.0.0/23", 23), nil},
		"no address for Pods":        {hybrid("10.132.0.0/16", 30), []string{"error InputInvalid " + prefix, "warning MaxPodsLowered " + overlayRange}},
		"three addresses":            {hybrid("10.132.0.0/16", 29), []string{"warning MaxPodsLowered " + overlayRange}},
		"class E for Pods":           {func(c *Cluster) { c.Network.ClusterNetworks = []string{"240.0.0.0/14"} }, []string{"error ClassENetwork spec.clusterNetwork[0].cidr"}},
		"class E for Services":       {func(c *Cluster) { c.Network.ServiceNetworks = []string{"250.0.0.0/16"} }, []string{"error ClassENetwork spec.serviceNetwork[0]"}},
		"the port of Geneve":         {func(c *Cluster) { c.Network.HybridOverlayPort = 6081 }, []string{"error InputInvalid " + port}},
		"another port of Geneve":     {func(c *Cluster) { c.Network.GenevePort = 4789 }, []string{"error InputInvalid " + port}},
		"no port":                    {func(c *Cluster) { c.Network.HybridOverlayPort = 65536 }, []string{"error InputInvalid " + port}},
		"the port of vSphere":        {func(c *Cluster) { c.Platform = bundle.PlatformVSphere }, []string{"warning VXLANPortOnVSphere " + port}},
		"another port on vSphere":    {func(c *Cluster) { c.Platform, c.Network.HybridOverlayPort = bundle.PlatformVSphere, 9898 }, nil},
	} {
		c := testCluster(bundle.PlatformNone)
		c.Network.ClusterNetworks, c.Network.JoinNetworks, c.Network.MachineNetworks = []string{"10.128.0.0/14"}, []string{"100.64.0.0/16"}, []string{"192.168.0.0/24"}
		c.Network.InstalledNetworks = []string{"10.9.0.0/16"}
		tt.change(&c)
		var got []string
		for _, f := range slices.Concat(c.checkNetwork(), c.checkMaxPods()) {
			got = append(got, strings.Join([]string{string(f.Severity), f.Reason, f.Field}, " "))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func hybrid(cidr string, hostPrefix int) func(*Cluster) {
	return func(c *Cluster) {
		c.Network.HybridNetworks, c.Network.HybridHostPrefixes = []string{cidr}, []int{hostPrefix}
	}
}

// TestTheHybridOverlayOfVSphereIsSetWithItsPort: it cannot be changed afterwards.
func TestTheHybridOverlayOfVSphereIsSetWithItsPort(t *testing.T) {
	for platform, want := range map[bundle.Platform]bool{bundle.PlatformVSphere: true, bundle.PlatformAWS: false} {
		c := testCluster(platform)
		c.Network.HybridOverlay = false
		findings := c.checkNetwork()
		if len(findings) != 1 || findings[0].Reason != reason.HybridOverlayMissing || strings.Contains(findings[0].Fix, "hybridOverlayVXLANPort") != want {
			t.Errorf("%s: %+v", platform, findings)
		}
	}
}

// TestANodeInTheRangeOfTheHybridOverlayIsRefused, because its address is that of a Pod too.
func TestANodeInTheRangeOfTheHybridOverlayIsRefused(t *testing.T) {
	for cidr, want := range map[string]bool{"10.0.0.0/16": true, "10.132.0.0/14": false} {
		c := testCluster(bundle.PlatformNone)
		c.Network.HybridNetworks = []string{cidr}
		refused := slices.ContainsFunc(c.checkNode(testNode()), func(f bundle.Finding) bool {
			return f.Severity == bundle.SeverityError && f.Reason == reason.HybridOverlayOverlaps
		})
		if refused != want {
			t.Errorf("%s: refused is %t", cidr, refused)
		}
	}
}

// TestAKubeletHasNoMorePodsThanAddresses.
func TestAKubeletHasNoMorePodsThanAddresses(t *testing.T) {
	for _, tt := range []struct {
		hostPrefix int
		settings   string
		want       int32
		warned     bool
	}{
		{23, "", 250, false},
		{26, "", 59, true},
		{26, `{"maxPods":60}`, 59, true},
		{26, `{"maxPods":59}`, 59, false},
		{26, `{"maxPods":null}`, 59, true},
		{24, `{"maxPods":500}`, 251, true},
		{25, `{"maxPods":0}`, 0, false}, // the kubelet's default, 110
	} {
		c := testCluster(bundle.PlatformNone)
		c.Network.HybridNetworks, c.Network.HybridHostPrefixes = []string{"10.132.0.0/16", "10.140.0.0/16"}, []int{tt.hostPrefix, 20}
		c.Settings.Kubelet = json.RawMessage(tt.settings)
		config, err := c.kubeletConfig(bundle.StageJoined)
		if warned := len(c.checkMaxPods()) > 0; err != nil || config.MaxPods != tt.want || warned != tt.warned {
			t.Errorf("hostPrefix %d, settings %s: maxPods %d, warned %t, %v; want %d, %t", tt.hostPrefix, tt.settings, config.MaxPods, warned, err, tt.want, tt.warned)
		}
	}
}
