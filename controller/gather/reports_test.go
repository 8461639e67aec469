package gather

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/record"
	"wmco/layout"
	"wmco/render"
)

// reported is a Node of a host in an overlay network, with what its agent reports.
type reported struct {
	subnet string
	status []string
	facts  bundle.Facts
}

func (r reported) object(t testing.TB) objects.Object {
	t.Helper()
	text, err := published.Report{State: published.StateApplied, Facts: &r.facts}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", UID: "uid-1", Annotations: map[string]string{published.ReportAnnotation: text, annotationSubnet: r.subnet}}}
	for _, a := range r.status {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	body, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return object("", "Node", "", "win-a", string(body))
}

// inOverlay is a Node whose host has an address, and tells the truth.
func inOverlay(address string) reported {
	return reported{"10.132.4.0/24", []string{address}, bundle.Facts{
		Schema: bundle.FactsSchema, HostName: "win-a", Addresses: []string{address, "10.132.4.2"}, DefaultRoute: bundle.DefaultRoute{Address: address},
		Networks:  []bundle.HNSNetwork{{Name: "nat", AddressPrefix: "172.20.0.0/20"}, {Name: layout.OverlayNetwork, AddressPrefix: "10.132.4.0/24", ManagementIP: address}},
		Endpoints: []bundle.HNSEndpoint{{Name: layout.VIPEndpoint, Network: layout.OverlayNetwork, IP: "10.132.4.2"}},
	}}
}

// TestFactsOfANodeAreComparedWithWhatIsKnown: whoever may patch Nodes writes them, and some of them are rendered and signed.
func TestFactsOfANodeAreComparedWithWhatIsKnown(t *testing.T) {
	const foreign = "203.0.113.7"
	machine := machineAt("m-a", "m1", "192.0.2.1", "192.0.2.11")
	entries := func(entry string) objects.Object {
		return object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, fmt.Sprintf(`{"data":{%q:"username=u"}}`, entry))
	}
	of := func(id record.ID, address, resolved string) record.Record {
		r := record.New(id)
		r.Node, r.NodeUID, r.Address, r.Resolved = "win-a", "uid-1", address, resolved
		return r
	}
	ofMachine, ofAddress, ofName := of("machine_m1", "192.0.2.1", ""), of("192.0.2.1", "192.0.2.1", "192.0.2.1"), of("win.example.com", "win.example.com", "192.0.2.1")
	route := func(r *reported, a string) { r.facts.DefaultRoute.Address = a }
	managed := func(r *reported, a string) { r.facts.Networks[1].ManagementIP = a }
	for name, tt := range map[string]struct {
		host     objects.Object
		record   record.Record
		platform string
		change   func(*reported)
		// wrong is a part of the finding; empty where the facts are used.
		wrong string
	}{
		"a Machine that tells the truth":                   {host: machine, record: ofMachine},
		"a Machine, by its other address":                  {host: machine, record: ofMachine, change: func(r *reported) { route(r, "192.0.2.11"); managed(r, "192.0.2.11") }},
		"a Machine with another route":                     {host: machine, record: ofMachine, change: func(r *reported) { route(r, foreign) }, wrong: "address of its default route, 203.0.113.7"},
		"a Machine with another overlay":                   {host: machine, record: ofMachine, change: func(r *reported) { managed(r, foreign) }, wrong: "address of its overlay network, 203.0.113.7"},
		"a Machine with another route, which its Node has": {host: machine, record: ofMachine, change: func(r *reported) { route(r, foreign); r.status = []string{foreign} }, wrong: "default route"},
		"a Machine of Nutanix, which gives the address":    {host: machine, record: ofMachine, platform: "Nutanix", change: func(r *reported) { route(r, foreign) }},
		"an entry that tells the truth":                    {host: entries("192.0.2.1"), record: ofAddress},
		"an entry that is an address, and another route":   {host: entries("192.0.2.1"), record: ofAddress, change: func(r *reported) { route(r, foreign) }},
		"an entry that is an address, and another overlay": {host: entries("192.0.2.1"), record: ofAddress, change: func(r *reported) { managed(r, foreign); r.status = append(r.status, foreign) }, wrong: "overlay network"},
		"an entry that is a name":                          {host: entries("win.example.com"), record: ofName},
		"an entry that is a name, and another route":       {host: entries("win.example.com"), record: ofName, change: func(r *reported) { route(r, foreign) }, wrong: "default route"},
		"an entry that is a name, and a second adapter": {host: entries("win.example.com"), record: ofName, change: func(r *reported) {
			r.facts.Addresses = []string{"192.0.2.1", "192.0.2.11"}
			route(r, "192.0.2.11")
			managed(r, "192.0.2.11")
			r.status = []string{"192.0.2.11"}
		}},
		"an entry that was removed":                              {record: ofAddress, host: entries("192.0.2.99")},
		"an entry that was removed, and another route":           {record: ofAddress, host: entries("192.0.2.99"), change: func(r *reported) { route(r, foreign) }, wrong: "default route"},
		"before there is an overlay network":                     {host: machine, record: ofMachine, change: func(r *reported) { r.subnet, r.facts.Networks, r.facts.Endpoints = "", nil, nil }},
		"before there is an overlay network, with its subnet":    {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Networks, r.facts.Endpoints = nil, nil }},
		"a network without an address yet":                       {host: machine, record: ofMachine, change: func(r *reported) { managed(r, ""); r.facts.Endpoints = nil }},
		"all of the network of Windows nodes":                    {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Networks[1].AddressPrefix = "10.132.0.0/14" }, wrong: `has the subnet "10.132.0.0/14", and OVN has given the node "10.132.4.0/24"`},
		"a subnet, of a Node without one":                        {host: machine, record: ofMachine, change: func(r *reported) { r.subnet = "" }, wrong: `OVN has given the node ""`},
		"a subnet elsewhere, which the Node has too":             {host: machine, record: ofMachine, change: func(r *reported) { r.subnet, r.facts.Networks[1].AddressPrefix = "10.0.0.0/8", "10.0.0.0/8" }, wrong: "is not one of the hybrid overlay"},
		"a subnet that is none, for which the bundle is refused": {host: machine, record: ofMachine, change: func(r *reported) { r.subnet = "2001:db8::/64" }},
		"a source address elsewhere":                             {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Endpoints[0].IP = "203.0.113.9" }, wrong: "203.0.113.9, is not in the subnet"},
		"a source address that is none":                          {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Endpoints[0].IP = "x" }, wrong: "is not in the subnet"},
		"networks and endpoints that are not rendered": {host: machine, record: ofMachine, change: func(r *reported) {
			r.facts.Endpoints = append(r.facts.Endpoints, bundle.HNSEndpoint{Name: "pod", IP: foreign})
		}},
		"as many addresses as a host has":                       {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Addresses = append(r.facts.Addresses, manyAddresses(510)...) }},
		"more addresses than a host has":                        {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Addresses = append(r.facts.Addresses, manyAddresses(511)...) }, wrong: "there are 513 addresses, at most 512 are allowed"},
		"more networks than a host has":                         {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Networks = append(r.facts.Networks, make([]bundle.HNSNetwork, 63)...) }, wrong: "there are 65 networks"},
		"addresses of another host alone, and of another route": {host: machine, record: ofMachine, change: func(r *reported) { r.facts.Addresses = []string{foreign}; route(r, foreign) }, wrong: "are of another host"},
	} {
		t.Run(name, func(t *testing.T) {
			onNode := inOverlay("192.0.2.1")
			if tt.change != nil {
				tt.change(&onNode)
			}
			set := record.NewSet(tt.record)
			r := gatherFrom(t, Options{Records: &set}, tt.host, onNode.object(t),
				object(groupConfig, "Infrastructure", "", clusterName, fmt.Sprintf(`{"status":{"platformStatus":{"type":%q}}}`, tt.platform)),
				object(groupOperator, "Network", "", clusterName, `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14"}]}}}}}`))
			i := slices.IndexFunc(r.Nodes, func(n render.Node) bool { return n.Name == "win-a" })
			if used := !r.Nodes[i].Facts.IsZero(); used != (tt.wrong == "") {
				t.Errorf("the facts are used: %t", used)
			}
			got := ""
			for _, f := range r.Findings {
				if f.Reason == reason.FactsContradicted || f.Reason == reason.FactsUnmatched {
					got += f.Message
					if f.Severity != bundle.SeverityWarning || f.Node != "win-a" || f.Fix == "" || !strings.Contains(f.Field, published.ReportAnnotation) {
						t.Errorf("%+v", f)
					}
				}
			}
			if (got == "") != (tt.wrong == "") || !strings.Contains(got, tt.wrong) {
				t.Errorf("finding %q, want one with %q", got, tt.wrong)
			}
		})
	}
}

func manyAddresses(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("203.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	return list
}

// TestOfManyAddressesTheFirstOnesCount: a kubelet may report as many as etcd holds, and all of them are compared with those of all hosts.
func TestOfManyAddressesTheFirstOnesCount(t *testing.T) {
	onNode := inOverlay("192.0.2.1")
	onNode.status = slices.Concat([]string{"192.0.2.1", "192.0.2.1"}, manyAddresses(30_000))
	r := record.New("machine_m1")
	r.Node, r.NodeUID, r.Address = "win-a", types.UID("uid-1"), "192.0.2.1"
	set := record.NewSet(r)
	n := gatherFrom(t, Options{Records: &set}, machineAt("m-a", "m1", "192.0.2.1"), onNode.object(t)).Nodes[0]
	if got := n.Reported; len(got) != 63 || got[0] != "192.0.2.1" || got[1] != "203.0.0.0" || n.Facts.IsZero() {
		t.Errorf("%d addresses count, the first are %q; facts %t", len(got), got[:min(len(got), 2)], !n.Facts.IsZero())
	}
	// A Machine has those that its cloud gives it, in their order and each once.
	all := gatherFrom(t, Options{}, machineAt("m-a", "m1", slices.Concat([]string{"192.0.2.1"}, manyAddresses(100), []string{"192.0.2.1"})...)).Nodes[0].Addresses
	if len(all) != 101 || all[0] != "192.0.2.1" || all[100] != "203.0.0.99" {
		t.Errorf("%d addresses of a Machine: %q", len(all), all)
	}
}

// BenchmarkANodeWithManyAddresses is a reading of the inputs with one Node that reports as much as it may.
func BenchmarkANodeWithManyAddresses(b *testing.B) {
	onNode := inOverlay("192.0.2.1")
	onNode.status, onNode.facts.Addresses = manyAddresses(30_000), manyAddresses(3_000)
	list := given{onNode.object(b), machineAt("m-a", "m1", "192.0.2.1")}
	r := record.New("machine_m1")
	r.Node, r.NodeUID, r.Address = "win-a", types.UID("uid-1"), "192.0.2.1"
	set := record.NewSet(r)
	for b.Loop() {
		if _, err := Gather(b.Context(), list, Options{Records: &set}); err != nil {
			b.Fatal(err)
		}
	}
}
