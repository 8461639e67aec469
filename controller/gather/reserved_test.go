package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
)

// TestWhatBelongsToTheCluster is what no host has as its own, on each kind of platform.
func TestWhatBelongsToTheCluster(t *testing.T) {
	const urls = `"apiServerURL":"https://api.demo.example.com:6443","apiServerInternalURI":"https://api-int.demo.example.com:6443"`
	names := []string{"api-int.demo.example.com", "api.demo.example.com"}
	routes := []string{"apps.demo.example.com"}
	network := object(groupConfig, "Network", "", clusterName, `{"status":{"serviceNetwork":["172.30.0.0/16","fd02::/112"],"clusterNetwork":[{"cidr":"10.128.0.0/14"},{"cidr":"no CIDR"}]}}`)
	operator := object(groupOperator, "Network", "", clusterName, `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":{"hybridClusterNetwork":[{"cidr":"10.132.0.9/14"}]}}}}}`)
	for name, tt := range map[string]struct {
		infrastructure string
		more           []objects.Object
		want           Reserved
	}{
		"a load balancer outside of the cluster": {`{"status":{` + urls + `,"platformStatus":{"type":"None"}}}`, nil, Reserved{Names: names, Domains: routes}},
		"VIPs of a platform, in old fields and in new ones": {
			`{"status":{` + urls + `,"platformStatus":{"type":"VSphere","vsphere":{"apiServerInternalIP":"192.0.2.1","apiServerInternalIPs":["192.0.2.1","fd00::1"],"ingressIP":"192.0.2.2","ingressIPs":["192.0.2.2"],"machineNetworks":["192.0.2.0/24"]}}}}`, nil,
			Reserved{Names: append([]string{"192.0.2.1", "192.0.2.2"}, append(names, "fd00::1")...), Domains: routes},
		},
		"load balancers that a cluster in a cloud runs": {
			`{"status":{` + urls + `,"platformStatus":{"type":"GCP","gcp":{"projectID":"p","cloudLoadBalancerConfig":{"dnsType":"ClusterHosted","clusterHosted":{"apiIntLoadBalancerIPs":["192.0.2.3"],"ingressLoadBalancerIPs":["192.0.2.4"]}}}}}}`, nil,
			Reserved{Names: append([]string{"192.0.2.3", "192.0.2.4"}, names...), Domains: routes},
		},
		"an API server with a name of another form": {`{"status":{"apiServerURL":"https://k8s.example.com","apiServerInternalURI":"https://192.0.2.5:6443"}}`, nil, Reserved{Names: []string{"192.0.2.5", "k8s.example.com"}}},
		"the internal name alone":                   {`{"status":{"apiServerInternalURI":"https://api-int.demo.example.com:6443"}}`, nil, Reserved{Names: names, Domains: routes}},
		"an address that is no URL":                 {`{"status":{"apiServerURL":"%","apiServerInternalURI":""}}`, nil, Reserved{}},
		"the networks": {`{}`, []objects.Object{network, operator}, Reserved{
			Networks: []string{"10.128.0.0/14", "10.132.0.9/14", "172.30.0.0/16", "fd02::/112"},
		}},
	} {
		r := gatherFrom(t, Options{}, append(tt.more, object(groupConfig, "Infrastructure", "", clusterName, tt.infrastructure))...)
		if diff := cmp.Diff(tt.want, r.Reserved); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
