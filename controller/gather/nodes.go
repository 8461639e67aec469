package gather

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// listHosts combines Machines, windows-instances, Nodes and facts into one list of Windows hosts.
func (g *gatherer) listHosts() []render.Node {
	g.readInstances()
	list := g.addInstances(g.listMachines())
	if g.options.Records != nil {
		list = g.addRecordedNodes(list, *g.options.Records)
	} else {
		list = g.addNodes(list)
	}
	g.addGivenFacts(list)
	slices.SortFunc(list, func(a, b render.Node) int {
		return cmp.Or(
			cmp.Compare(unnamedNodesLast(a), unnamedNodesLast(b)), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Address, b.Address),
		)
	})
	return list
}

// addGivenFacts gives each host the facts that are of it alone. They may be collected by hand, one answer of each host, and an
// answer may hold more than the facts of its host, or the addresses of another one.
func (g *gatherer) addGivenFacts(list []render.Node) {
	hosts, facts := make([][]int, len(g.options.Facts)), make([][]int, len(list))
	for i := range list {
		for k, f := range g.options.Facts {
			if FactsDescribe(f, list[i]) {
				hosts[k], facts[i] = append(hosts[k], i), append(facts[i], k)
			}
		}
	}
	for k, f := range g.options.Facts {
		var why, fix string
		switch of := hosts[k]; {
		case len(of) == 0:
			why, fix = "addresses match no Windows host in the inputs", "use the facts of a host that is in the inputs"
		case len(of) > 1:
			why = fmt.Sprintf("addresses match %d Windows hosts: %q, %q", len(of), list[of[0]].ID(), list[of[1]].ID())
			fix = "remove them, and collect the facts of these hosts again"
		case len(facts[of[0]]) > 1:
			why = fmt.Sprintf("host %q has others too", list[of[0]].ID())
			fix = "remove all but those that the host itself has printed"
		default:
			list[of[0]].Facts = f
			continue
		}
		g.addFinding(bundle.SeverityWarning, reason.FactsUnmatched, bundle.Finding{
			Message: fmt.Sprintf("facts %d are of %q, whose %s; they are not used", k+1, f.HostName, why), Fix: fix,
		})
	}
}

// unnamedNodesLast sorts hosts without a Node last.
func unnamedNodesLast(n render.Node) int {
	if n.Name == "" {
		return 1
	}
	return 0
}

func (g *gatherer) listMachines() []render.Node {
	var list []render.Node
	for _, o := range g.listObjects(groupMachine, "Machine") {
		var m machinev1beta1.Machine
		if !g.decodeObject(o, &m) || m.Labels[labelIgnore] == "true" || !g.checkName(m.Name, o.Ref) {
			continue
		}
		n := render.Node{
			Backing: render.BackingMachine, MachineName: m.Name, MachineUID: string(m.UID),
			ProviderID: ptr.Deref(m.Spec.ProviderID, ""), Ending: isBeingDeleted(m),
			Origins: render.Origins{render.FromMachine: o.Ref},
		}
		n.Addresses, n.HostNames = readAddresses(m.Status.Addresses)
		n.Address = firstIPv4(n.Addresses)
		if n.Address == "" {
			g.addFinding(bundle.SeverityInfo, reason.MachineWithoutAddress, bundle.Finding{
				Object: o.Ref, Field: "status.addresses", Message: "the Machine has no internal IPv4 address yet, so nothing is rendered for it", Fix: "wait until the cloud assigns one",
			})
			continue
		}
		list = append(list, n)
	}
	return list
}

// isBeingDeleted reports whether a Machine that is there has no host any longer, or not for long. Failed is a phase
// without a way back (github.com/openshift/machine-api-operator, pkg/controller/machine).
func isBeingDeleted(m machinev1beta1.Machine) bool {
	return m.DeletionTimestamp != nil || m.Status.Phase != nil && *m.Status.Phase == machinev1beta1.PhaseFailed
}

// readAddresses returns the addresses and host names of a Machine or Node, in their order, each once. A host name is
// taken as that of a node would be (bundle.FirstName); one that is not a DNS name is skipped.
func readAddresses(list []corev1.NodeAddress) (addresses, hostNames []string) {
	isKnown, isNamed := map[string]bool{}, map[string]bool{}
	for _, a := range list {
		switch a.Type {
		case corev1.NodeInternalIP:
			if _, err := netip.ParseAddr(a.Address); err == nil && !isKnown[a.Address] {
				addresses, isKnown[a.Address] = append(addresses, a.Address), true
			}
		case corev1.NodeInternalDNS, corev1.NodeHostName:
			name := bundle.FirstName(a.Address)
			if !isNamed[name] && len(validation.IsDNS1123Subdomain(name)) == 0 {
				hostNames, isNamed[name] = append(hostNames, name), true
			}
		case corev1.NodeExternalIP, corev1.NodeExternalDNS:
		}
	}
	return addresses, hostNames
}

func firstIPv4(addresses []string) string {
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() {
			return a
		}
	}
	return ""
}

// addInstances adds the entries of windows-instances. An entry that has an address of a Machine, or of another entry,
// is skipped.
func (g *gatherer) addInstances(machines []render.Node) []render.Node {
	all := slices.Clone(machines)
	for _, i := range g.instances {
		if !i.Skipped {
			all = append(all, render.Node{
				Backing: render.BackingInstance, Address: i.Address, Username: i.Username, Addresses: i.Addresses,
				Origins: render.Origins{render.FromInstances: g.cluster.Origins[render.FromInstances]},
			})
		}
	}
	owners := g.addressOwners(all, len(machines))
	list := all[:len(machines):len(machines)]
	for i, n := range all[len(machines):] {
		addresses := addressesAndNames(n)
		if k := slices.IndexFunc(addresses, func(a string) bool { return owners[a] != len(machines)+i }); k >= 0 {
			g.instanceTaken(n.Address, describeAddressOwner(all[owners[addresses[k]]]))
			continue
		}
		list = append(list, n)
	}
	return list
}

// addressOwners returns the position of the host that has each address and name: the entry that is the address of a
// node, a Machine, another entry that is the address, the one whose record has it, the first one. A host may write the
// record of its own name in the DNS, and the guest of a Machine what addresses it has (vSphere, by VMware Tools), so
// neither takes an address from an entry that had it before. The first of the hosts are those of Machines.
func (g *gatherer) addressOwners(all []render.Node, machines int) map[string]int {
	owners := map[string]int{}
	claim := func(i int, addresses []string) {
		for _, a := range addresses {
			if _, ok := owners[a]; !ok {
				owners[a] = i
			}
		}
	}
	instances := all[machines:]
	for i, n := range instances {
		if _, err := netip.ParseAddr(n.Address); err == nil && g.isRecordedNode(n) {
			claim(machines+i, []string{n.Address})
		}
	}
	for i, n := range all[:machines] {
		claim(i, addressesAndNames(n))
	}
	for i, n := range instances {
		claim(machines+i, []string{strings.ToLower(n.Address)})
	}
	for i, n := range instances {
		claim(machines+i, slices.DeleteFunc(g.recordedAddresses(n), func(a string) bool { return !slices.Contains(n.Addresses, a) }))
	}
	for i, n := range instances {
		claim(machines+i, n.Addresses)
	}
	return owners
}

// isRecordedNode reports whether the operator knows which Node a host is.
func (g *gatherer) isRecordedNode(n render.Node) bool {
	if g.options.Records == nil {
		return false
	}
	r, _ := g.options.Records.RecordByID(HostID(n))
	return r.Node != ""
}

// recordedAddresses are the addresses that the record of a host has, none where there are no records.
func (g *gatherer) recordedAddresses(n render.Node) []string {
	if g.options.Records == nil {
		return nil
	}
	r, _ := g.options.Records.RecordByID(HostID(n))
	return strings.Fields(r.Resolved)
}

// addressesAndNames returns the addresses and names of a Machine or an entry, in lower case.
func addressesAndNames(n render.Node) []string {
	list := slices.Concat([]string{n.Address}, n.Addresses, n.HostNames)
	for i, a := range list {
		list[i] = strings.ToLower(a)
	}
	return list
}

// describeAddressOwner names the host that has the address of an entry, and what to do.
func describeAddressOwner(n render.Node) advice {
	switch {
	case n.Backing != render.BackingMachine:
		return advice{
			"is the host of the entry " + n.Address,
			"remove the entry if both are one host, otherwise correct the records of the names in the cluster's DNS",
		}
	case n.Ending:
		return advice{
			"is an address of Machine " + n.MachineName + ", which has failed or is being deleted",
			"wait until the Machine is deleted; delete it if it has failed",
		}
	}
	return advice{
		"is an address of Machine " + n.MachineName,
		"remove the entry if the Machine is this host; otherwise look at the guest of the Machine, which reports addresses on some platforms",
	}
}

// advice is a problem and its fix.
type advice struct{ message, fix string }

// instanceTaken skips an entry. Of its findings, this one is kept.
func (g *gatherer) instanceTaken(address string, a advice) {
	f := g.aboutInstance(address, reason.InstanceTaken, a.message, a.fix)
	for k := range g.instances {
		if g.instances[k].Address == address {
			g.instances[k].Skipped, g.instances[k].Finding = true, f
		}
	}
}

// hasAddress reports whether the host has the address or name.
func hasAddress(n render.Node, address string) bool {
	return strings.EqualFold(address, n.Address) || slices.Contains(n.Addresses, address) ||
		slices.ContainsFunc(n.HostNames, func(h string) bool { return strings.EqualFold(h, address) })
}

// maxNodeAddresses is how many addresses of a Node are looked at. A kubelet with --node-ip reports one and its names, a
// cloud adds a few; whoever has its certificate may write as many as etcd holds.
const maxNodeAddresses = 64

// describeNode returns what a Node reports about its host.
func describeNode(node corev1.Node) render.Node {
	var described render.Node
	described.Addresses, described.HostNames = readAddresses(node.Status.Addresses[:min(len(node.Status.Addresses), maxNodeAddresses)])
	described.HostNames = append(described.HostNames, node.Name)
	return described
}

// listedNode is a Node with what names it as an input.
type listedNode struct {
	windowsnode.Node
	ref bundle.Ref
}

// listNodes returns the Windows Nodes, by name.
func (g *gatherer) listNodes() []listedNode {
	var nodes []listedNode
	add := func(node windowsnode.Node, ref bundle.Ref) {
		if g.checkName(node.Name, ref) {
			nodes = append(nodes, listedNode{node, ref})
		}
	}
	if g.options.Nodes == nil {
		for _, o := range g.listObjects("", "Node") {
			var node corev1.Node
			if g.decodeObject(o, &node) {
				add(windowsnode.Decode(node), o.Ref)
			}
		}
		return nodes
	}
	for _, n := range slices.SortedFunc(slices.Values(g.options.Nodes), func(a, b windowsnode.Node) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		// Without a digest of its contents, which would cost more than all else that is read of a Node.
		add(n, bundle.Ref{Kind: "Node", Name: n.Name})
	}
	return nodes
}

// addNodes matches Nodes to Machines and instances by address. A Node that matches none becomes an entry of its own.
func (g *gatherer) addNodes(list []render.Node) []render.Node {
	for _, node := range g.listNodes() {
		described := describeNode(*node.Node.Node)
		// The operator notes the entry here when it has asked the host: an entry that is a DNS name may be none of the
		// node's.
		described.Address = node.Annotations[annotationInstance]
		matches := matchingEntries(list, described)
		if len(matches) == 0 {
			list = append(list, render.Node{
				Backing: render.BackingNode, Address: firstIPv4(described.Addresses),
				RemovedEntry: entryOf(*node.Node.Node), Origins: render.Origins{},
			})
			matches = []int{len(list) - 1}
		}
		n := &list[matches[0]]
		n.Name, n.Subnet, n.ProviderID = node.Name, node.Annotations[annotationSubnet], g.identityOf(*n, node)
		n.Origins[render.FromNode] = node.ref
		n.Addresses = appendMissing(n.Addresses, described.Addresses)
		g.addReport(n, node, record.Record{})
		list = g.dropRepeats(list, matches, node.Name)
	}
	return list
}

// entryOf returns the entry of windows-instances in a Node's annotation.
func entryOf(node corev1.Node) string {
	if node.Labels[published.InstanceLabel] != "true" {
		return ""
	}
	return cmp.Or(
		node.Annotations[annotationInstance], firstIPv4(describeNode(node).Addresses),
	) // the existing operator does not note the entry
}

// matchingEntries returns the positions of the entries that describe the same host as a Node.
func matchingEntries(list []render.Node, described render.Node) []int {
	var found []int
	for i, n := range list {
		if n.Name != "" {
			continue
		}
		known := slices.ContainsFunc(allAddresses(n), func(a string) bool { return a != "" && hasAddress(described, a) })
		if known {
			found = append(found, i)
		}
	}
	return found
}

// dropRepeats removes entries for the same host under another address, such as its IP address and its name.
func (g *gatherer) dropRepeats(list []render.Node, matches []int, name string) []render.Node {
	for _, i := range slices.Backward(matches[1:]) {
		g.instanceTaken(list[i].Address, advice{"is node " + name + ", which another entry has already", "remove the entry"})
		list = slices.Delete(list, i, i+1)
	}
	return list
}

func appendMissing(list, more []string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// checkName accepts only names that an API server accepts and that a file on Windows can have: names of Machines and
// Nodes become names of hosts, folders and files. A Node may have one that Windows reserves, and keeps no other one
// waiting.
func (g *gatherer) checkName(name string, ref bundle.Ref) bool {
	f := bundle.Finding{Object: ref, Field: "metadata.name", Node: name}
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		f.Message, f.Fix = fmt.Sprintf("%q is not a valid name of a host", name), "an API server refuses this name: check where the object comes from"
		g.addFinding(bundle.SeverityError, reason.InputInvalid, f)
		return false
	case bundle.CheckName(name) != nil:
		f.Message, f.Fix = fmt.Sprintf("%q is a name that Windows reserves, and is left out", name), "rename the computer and let it join again, or delete the object"
		g.addFinding(bundle.SeverityWarning, reason.NodeNameReserved, f)
		return false
	}
	return true
}
