package csr

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestAddressesOfServingCertificates: the host of the entry 192.0.2.5 claims the address that it asks for, or the resolver the name, and
// it answers at 192.0.2.10. It gets addresses at which the operator reaches it and that no other has. Each case has one more thing than a cluster
// without other hosts.
func TestAddressesOfServingCertificates(t *testing.T) {
	const no, unreached = `the host does not have the address "192.0.2.10"`, "the host was not reached at its address 192.0.2.10"
	entry := func(address string, resolved ...string) render.Node {
		return render.Node{Backing: render.BackingInstance, Address: address, Addresses: resolved}
	}
	machine := render.Node{Backing: render.BackingMachine, MachineName: "machine-b", MachineUID: "uid-b", Address: "192.0.2.9", Addresses: []string{"192.0.2.9", "192.0.2.10"}}
	for name, tt := range map[string]struct {
		asks    string
		nodes   []render.Node
		records []record.Record
		objects []client.Object
		change  func(*cluster)
		// refused is a part of the Event; empty where the certificate is approved.
		refused string
	}{
		"a second adapter": {asks: "192.0.2.10"},
		"a second adapter with an IPv6 address": {
			asks: "fd00::10", change: func(c *cluster) { c.network.hosts["fd00::10"] = c.network.hosts["192.0.2.10"] },
		},
		"the entry":                        {asks: "192.0.2.5"},
		"an address where nothing answers": {asks: "192.0.2.10", change: func(c *cluster) { delete(c.network.hosts, "192.0.2.10") }, refused: unreached},
		"an address where a copy of the host answers, which has its host key": {
			asks: "192.0.2.10", change: func(c *cluster) { c.network.hosts["192.0.2.10"] = host{factsOf("WIN-B"), nil} }, refused: unreached,
		},
		"an address that the host does not claim": {
			asks: "192.0.2.10", change: func(c *cluster) { c.network.hosts["192.0.2.5"] = host{factsOf("WIN-A", "192.0.2.5"), nil} }, refused: no,
		},

		"the address of another entry, which is a name": {asks: "192.0.2.10", nodes: []render.Node{entry("win-b.example.com", "192.0.2.10")}, refused: no},
		"an earlier answer of the resolver for another entry": {
			asks: "192.0.2.10", nodes: []render.Node{entry("win-b.example.com")},
			records: []record.Record{{Entry: "win-b.example.com", Node: "win-b", Address: "win-b.example.com", Resolved: "192.0.2.10 192.0.2.11"}}, refused: no,
		},
		"an address that another entry had before the resolver gave another one": {
			asks: "192.0.2.10", nodes: []render.Node{entry("win-b.example.com", "192.0.2.12")},
			records: []record.Record{{Entry: "win-b.example.com", Node: "win-b", Address: "win-b.example.com", Resolved: "192.0.2.10"}},
		},
		"the address of a host whose entry was removed": {asks: "192.0.2.10", records: []record.Record{{Entry: "gone.example.com", Node: "win-b", Address: "192.0.2.10"}}, refused: no},
		"the address at which the host of a Machine was reached that is not there any longer": {
			asks: "192.0.2.10", records: []record.Record{{Machine: "uid-b", Node: "win-b", Address: "192.0.2.10"}}, refused: no,
		},
		"the second address of a Machine":                           {asks: "192.0.2.10", nodes: []render.Node{machine}, refused: no},
		"the entry, which the name of another entry is resolved to": {asks: "192.0.2.5", nodes: []render.Node{entry("win-b.example.com", "192.0.2.5")}},
		"the entry, at which another host was that is not removed yet": {
			asks: "192.0.2.5", records: []record.Record{{Machine: "uid-b", Node: "win-b", Address: "192.0.2.5"}},
		},

		"the address of a Linux node":                                {asks: "192.0.2.10", objects: []client.Object{node("master-0", "linux", nil, "192.0.2.10")}, refused: no},
		"the entry, which a Linux node reports":                      {asks: "192.0.2.5", objects: []client.Object{node("worker-0", "linux", nil, "192.0.2.5")}},
		"an address that only a Windows node reports, which may lie": {asks: "192.0.2.10", objects: []client.Object{node("win-b", "windows", nil, "192.0.2.10")}},
		"an address that only a node of a recorded host reports, whatever its label is": {
			asks: "192.0.2.10", objects: []client.Object{node("win-b", "linux", nil, "192.0.2.10")}, records: []record.Record{{Machine: "uid-b", Node: "win-b"}},
		},

		"the service of the API server": {asks: "172.30.0.1", refused: `the host does not have the address "172.30.0.1"`},
		"an address of a Pod":           {asks: "10.132.3.4", refused: `the host does not have the address "10.132.3.4"`},
		"a VIP":                         {asks: "192.0.2.100", refused: `the host does not have the address "192.0.2.100"`},
		"the address of the API server by its external name": {
			asks: "192.0.2.10", change: func(c *cluster) { c.resolver["api.example.com"] = []string{"192.0.2.10"} }, refused: no,
		},
		"the address of routes": {
			asks: "192.0.2.10", change: func(c *cluster) { c.resolver["console-openshift-console.apps.example.com"] = []string{"192.0.2.10"} }, refused: no,
		},
		"the external name of the API server": {asks: "api.example.com", refused: `the host does not have the name "api.example.com"`},
		"a name of a route":                   {asks: "oauth.apps.example.com", refused: `the host does not have the name "oauth.apps.example.com"`},
		"the name of a Node that is away, by its record": {
			asks: "win-b", records: []record.Record{{Machine: "uid-b", MachineName: "machine-b", Node: "win-b"}}, refused: `the host does not have the name "win-b"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			claim := factsOf("WIN-A", "192.0.2.5")
			if _, err := netip.ParseAddr(tt.asks); err == nil {
				claim.Addresses = append(claim.Addresses, tt.asks)
			} else {
				c.resolver["192.0.2.5"] = []string{tt.asks + "."}
			}
			c.network.hosts["192.0.2.5"], c.network.hosts["192.0.2.10"] = host{claim, nil}, host{factsOf("WIN-A"), nil}
			for _, address := range []string{"172.30.0.1", "10.132.3.4", "192.0.2.100"} {
				c.network.hosts[address] = host{factsOf("WIN-A"), nil}
			}
			c.inputs.All = append(c.inputs.All, tt.nodes...)
			c.records = append(tt.records, record.Record{Entry: "192.0.2.5", Node: "win-a", HostKey: "pinned", Address: "192.0.2.5"})
			c.objects = tt.objects
			if tt.change != nil {
				tt.change(c)
			}
			a := c.approver(t, serving("win-a", tt.asks))
			_, events, err := a.reconcile(t)
			must(t, err)
			if got := a.approved(t); got != (tt.refused == "") || !strings.Contains(strings.Join(events, "\n"), tt.refused) || got != (len(events) == 0) {
				t.Errorf("approved %t, events %q, want %q", got, events, tt.refused)
			}
		})
	}
}

// TestAnEntryThatIsANameIsReachedAtItsAddress: the host may write into the DNS that its name is at any address.
func TestAnEntryThatIsANameIsReachedAtItsAddress(t *testing.T) {
	const name, address = "host.example.com", "192.0.2.8"
	for claim, tt := range map[string]struct {
		change  func(*cluster)
		refused string
		asked   []string
		// served is what the record has afterwards, for the next certificate.
		served string
	}{
		"it answers there": {asked: []string{name, name, address}, served: address},
		"nothing answers there": {
			change: func(c *cluster) { delete(c.network.hosts, address) }, asked: []string{name, name, address}, refused: "was not reached at its address 192.0.2.8",
		},
		"its key is not in its record yet": {change: func(c *cluster) { c.records[0].HostKey = "" }, asked: []string{name, name}, refused: "not yet"},
		"it is an address of the API server": {
			change: func(c *cluster) { c.resolver["api-int.example.com"] = []string{address} }, asked: []string{name, name}, refused: "does not have the address",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			c := newCluster(t)
			c.inputs.All[0].Address, c.inputs.All[0].Addresses = name, []string{address}
			c.resolver[name] = []string{address}
			c.records = []record.Record{{Entry: name, Node: "win-a", HostKey: "pinned", Address: name, Resolved: address}}
			c.network.hosts = map[string]host{name: {factsOf("WIN-A"), nil}, address: {factsOf("WIN-A"), nil}}
			if tt.change != nil {
				tt.change(c)
			}
			a := c.approver(t, serving("win-a", address))
			result, events, err := a.reconcile(t)
			must(t, err)
			if diff := cmp.Diff(tt.asked, c.network.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := a.approved(t); got != (tt.refused == "") {
				t.Errorf("approved %t, events %q", got, events)
			}
			if r, _, err := a.Records.GetRecord(t.Context(), record.OfEntry(name)); err != nil || r.Served != tt.served {
				t.Errorf("the record: %+v, %v", r, err)
			}
			if tt.refused == "not yet" {
				if len(events) > 0 || result.RequeueAfter != retryAsk {
					t.Errorf("events %q, again after %s", events, result.RequeueAfter)
				}
			} else if !strings.Contains(strings.Join(events, "\n"), tt.refused) {
				t.Errorf("events %q, want %q", events, tt.refused)
			}
		})
	}
}

// TestAHostIsReachedAtAFewAddresses: each may cost the operator the time in which nothing answers. The first that is not its own ends it.
func TestAHostIsReachedAtAFewAddresses(t *testing.T) {
	claims := []string{"192.0.2.5", "192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14", "192.0.2.15", "192.0.2.16"}
	for name, tt := range map[string]struct{ answers, asked []string }{
		"all answer":     {claims, claims[1:5]},
		"none answers":   {nil, claims[1:2]},
		"two of them do": {claims[1:3], claims[1:4]},
	} {
		c := newCluster(t)
		c.records = []record.Record{{Entry: "192.0.2.5", Node: "win-a", HostKey: "pinned", Address: "192.0.2.5"}}
		for _, address := range tt.answers {
			c.network.hosts[address] = host{bundle.Facts{Schema: bundle.FactsSchema, HostName: "WIN-A"}, nil}
		}
		c.network.hosts["192.0.2.5"] = host{factsOf("WIN-A", claims...), nil}
		a := c.approver(t, serving("win-a", claims...))
		if _, _, err := a.reconcile(t); err != nil || a.approved(t) {
			t.Errorf("%s: approved %t, %v", name, a.approved(t), err)
		}
		got := slices.DeleteFunc(c.network.asked, func(address string) bool { return address == "192.0.2.5" })
		if diff := cmp.Diff(tt.asked, got); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", name, diff)
		}
	}
}
