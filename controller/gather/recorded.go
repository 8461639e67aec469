package gather

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// addRecordedNodes adds the Nodes to the hosts that they are by the operator's own records. What a Node reports about
// itself makes it no host of a Machine or an instance, and keeps no other host from becoming a node.
func (g *gatherer) addRecordedNodes(list []render.Node, records record.Set) []render.Node {
	byID := map[record.ID]int{}
	for i, n := range list {
		byID[HostID(n)] = i
	}
	for _, node := range g.listNodes() {
		described := describeNode(*node.Node.Node)
		r, known := records.OfNode(node.Name, node.UID)
		i, listed := byID[r.ID()]
		if !known || !listed {
			list = append(list, withoutHost(described, r))
			i = len(list) - 1
			if g.machinesRefused && r.Machine != "" { // the Machine may be there: its fields are unknown, and some of them are in the bundle
				list[i].Unconfirmed = true
			}
		}
		n := &list[i]
		if known {
			n.AcceptedKey = g.usableKey(r)
		}
		n.Name, n.Subnet, n.Reported, n.ProviderID = node.Name, node.Annotations[annotationSubnet], described.Addresses, g.identityOf(*n, node)
		n.Origins[render.FromNode] = node.ref
		if !n.Unconfirmed {
			g.addReport(n, node, r)
		}
	}
	g.judgeClaims(list)
	return list
}

// identityOf returns the identity in the cloud of a Node's host. One that the Node has cannot be changed, and so by no
// report (k8s.io/kubernetes pkg/apis/core/validation, ValidateNodeUpdate).
func (g *gatherer) identityOf(n render.Node, node listedNode) string {
	if g.cluster.Platform != bundle.PlatformAWS {
		return n.ProviderID
	}
	return cmp.Or(n.ProviderID, node.Spec.ProviderID)
}

// usableKey returns the key with which the operator has logged in to a host last; none where the record has something
// else in its place.
func (g *gatherer) usableKey(r record.Record) string {
	key := r.ProvenKey(g.options.RecordKey)
	if _, err := bundle.Fingerprint(key); err != nil {
		return ""
	}
	return key
}

// withoutHost returns the host of a Node that no Machine and no entry is for: the operator has no record of it, or the
// Machine or entry was deleted.
func withoutHost(described render.Node, r record.Record) render.Node {
	n := render.Node{Backing: render.BackingNode, Address: firstIPv4(described.Addresses), Origins: render.Origins{}}
	if n.Unconfirmed = r.Node == ""; n.Unconfirmed {
		return n
	}
	n.Address, n.Username, n.RemovedEntry = r.Address, r.Account, r.Entry
	return n
}

// HostID returns the ID of a host's record, empty for a Node that no Machine and no entry is for.
func HostID(n render.Node) record.ID {
	switch n.Backing {
	case render.BackingMachine:
		return record.OfMachine(types.UID(n.MachineUID))
	case render.BackingInstance:
		return record.OfEntry(n.Address)
	case render.BackingNode:
	}
	if n.RemovedEntry != "" {
		return record.OfEntry(n.RemovedEntry)
	}
	return ""
}

// byAddress returns the positions of the hosts of Machines and instances, by their addresses.
func byAddress(list []render.Node) map[string]int {
	all := map[string]int{}
	for i, n := range list {
		if n.Backing == render.BackingNode {
			continue
		}
		for _, a := range append([]string{strings.ToLower(n.Address)}, n.Addresses...) {
			if before, ok := all[a]; !ok || recordPrecedence(n) >= recordPrecedence(list[before]) {
				all[a] = i
			}
		}
	}
	return all
}

// recordPrecedence orders hosts with one address by which of them a Node without a record is, if any: that of a Machine
// which is ending was there before the next one's, and one with a record has a Node.
func recordPrecedence(n render.Node) int {
	switch {
	case !n.Ending:
		return 1
	case n.Name != "":
		return 0
	}
	return 2
}

// judgeClaims looks at the addresses that Nodes report. One without a host may be the Node of a host that has none;
// that is noted there. One that has a host and reports an address of another one changes nothing for that, and is a
// finding.
func (g *gatherer) judgeClaims(list []render.Node) {
	hosts := byAddress(list)
	for _, n := range list {
		for _, a := range n.Reported {
			i, ok := hosts[a]
			if ok && n.Name != "" && HostID(list[i]) != HostID(n) {
				g.judgeClaim(n, &list[i])
			}
		}
	}
}

// judgeClaim judges the address of another host that a Node reports.
func (g *gatherer) judgeClaim(n render.Node, other *render.Node) {
	switch {
	case !n.Unconfirmed && !n.Ending && !other.Ending:
		g.addressClaimed(n, *other)
	case !n.Unconfirmed || other.Name != "" || n.Name == other.ClaimedBy:
	case other.ClaimedBy == "":
		other.ClaimedBy = n.Name
	case !slices.Contains(other.AlsoClaimedBy, n.Name):
		other.AlsoClaimedBy = append(other.AlsoClaimedBy, n.Name)
	}
}

func (g *gatherer) addressClaimed(n, other render.Node) {
	fix := "check the host of node " + n.Name + ": only its kubelet, or a program with the kubelet's certificate, can have written that"
	if other.Backing == render.BackingInstance {
		fix = "remove the entry if it is the same host; if not, " + fix
	}
	g.addFinding(bundle.SeverityWarning, reason.AddressClaimed, bundle.Finding{
		Object: n.Origins[render.FromNode], Field: "status.addresses", Node: n.Name, Fix: fix,
		Message: fmt.Sprintf(
			"the Node reports an address of %s, which is another host; the address is ignored",
			describeHostSource(other),
		),
	})
}

// describeHostSource names a host by the object that asks for it.
func describeHostSource(n render.Node) string {
	if n.Backing == render.BackingMachine {
		return "Machine " + n.MachineName
	}
	return "the entry " + n.Address + " of " + render.InstancesConfigMap
}
