package csr

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/configure"
	"wmco/controller/csr/certificates"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/render"
)

// addClusterFacts adds what the API server and the records say: the names of all Nodes, and what belongs to the
// cluster, other Nodes and other hosts than this one.
func (a *Approver) addClusterFacts(ctx context.Context, inputs *desired.Hosts, h certificates.Host,
	k *certificates.Known) error {
	a.listsNodes.Do(func() { a.nodes.Source = a.listNodes })
	nodes, err := a.nodes.Read(ctx)
	if err != nil {
		return err
	}
	addNodes(nodes, inputs, k)
	k.Reserved = append(k.Reserved, inputs.Reserved.Names...)
	k.Domains = inputs.Reserved.Domains
	for _, cidr := range inputs.Reserved.Networks {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			k.Networks = append(k.Networks, p)
		}
	}
	k.Others = append(k.Others, inputs.NamesOfOthers(render.Node{Backing: render.BackingInstance,
		Address: h.Address})...)
	return nil
}

// clusterNode is what of a Node decides about the certificates of others.
type clusterNode struct {
	name      string
	isWindows bool
	addresses []string
}

const (
	// nodesAtATime is how many Nodes are in memory whole: 5,000 take 120 MiB.
	nodesAtATime = 500
	// mostAddresses is how many addresses of a Node are looked at: its kubelet may write as many as an object holds.
	// One with addresses of services has hundreds.
	mostAddresses = 512
)

// listNodes returns all Nodes as the API server has them. It is called once for all requests that wait: whoever has the
// bootstrap token, or the identity of a node, has as many judged as they like.
func (a *Approver) listNodes(ctx context.Context) ([]clusterNode, error) {
	var all []clusterNode
	for page, more := "", true; more; more = page != "" {
		var nodes corev1.NodeList
		if err := a.Live.List(ctx, &nodes, client.Limit(nodesAtATime), client.Continue(page)); err != nil {
			return nil, fmt.Errorf("listing Nodes: %w", err)
		}
		for _, n := range nodes.Items {
			node := clusterNode{name: n.Name, isWindows: n.Labels[corev1.LabelOSStable] == "windows"}
			for _, address := range n.Status.Addresses[:min(len(n.Status.Addresses), mostAddresses)] {
				node.addresses = append(node.addresses, address.Address)
			}
			all = append(all, node)
		}
		page = nodes.Continue
	}
	return all, nil
}

// addNodes adds the names of Nodes, and what those report that the operator does not know.
func addNodes(nodes []clusterNode, inputs *desired.Hosts, k *certificates.Known) {
	for _, n := range nodes {
		k.Nodes = append(k.Nodes, n.name)
		_, known := inputs.Records.RecordOfNode(n.name)
		if known || n.isWindows {
			continue // what it reports is no evidence against another host either, and it writes its label itself
		}
		// It writes them itself, so none of them is refused to a host whose entry it is (certificates.Known).
		k.Others = append(k.Others, n.addresses...)
	}
}

// reachAddresses returns those of the addresses at which a host is reached that has given its name. They are what it
// asks for besides its entry, also what the resolver gives its entry: a host may write its own record in the DNS. Where
// it does not answer under its pinned key, the address is not its own.
func (a *Approver) reachAddresses(ctx context.Context, inputs *desired.Hosts, node render.Node, name string,
	addresses []netip.Addr) ([]string, error) {
	// At a first contact, whoever answers at the address would be taken for the host.
	id, _ := inputs.RecordOf(node)
	switch r, _, err := a.Records.GetRecord(ctx, id); {
	case err != nil:
		return nil, err
	case r.HostKey == "":
		return nil, errNotPinned
	}
	var reached []string
	for _, address := range addresses {
		t, err := a.Hosts.TargetOf(id, configure.LoginAccount(node, inputs.Cluster.Platform), address.String())
		if err != nil {
			return nil, err
		}
		facts, err := a.Hosts.AskAtOtherAddress(ctx, t)
		if err != nil || facts.HostName != name { // copies of one machine have one host key
			a.Log.Info("a host is not reached at an address that it asks a certificate for", "host", node.Address,
				"address", address, "answers", facts.HostName, "error", err)
			break
		}
		reached = append(reached, address.String())
	}
	return reached, nil
}

// errNotPinned ends an attempt while the key of a host is pinned for its address alone.
var errNotPinned = errors.New("its host key is not in its record yet")

// routeLabel is a name below the domain of routes: that of the console. All of them have the same addresses.
const routeLabel = "console-openshift-console."

// resolveReserved returns the addresses that the resolver gives the names of the API server and of routes: where the
// load balancers are not the cluster's own, nothing else has them.
func (a *Approver) resolveReserved(ctx context.Context, r gather.Reserved) []string {
	names := slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool {
		_, err := netip.ParseAddr(name)
		return err == nil
	})
	for _, domain := range r.Domains {
		names = append(names, routeLabel+domain)
	}
	var list []string
	for _, name := range names {
		list = append(list, a.resolveAddress(ctx, name)...)
	}
	return list
}
