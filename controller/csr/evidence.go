package csr

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"wmco/applier/remote"
	"wmco/controller/csr/certificates"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// addClusterFacts adds what the API server and the records say: the names of all Nodes, and what belongs to the cluster, Machines, other Nodes and
// other hosts than this one.
func (a *Approver) addClusterFacts(ctx context.Context, inputs *desired.Hosts, h certificates.Host, k *certificates.Known) error {
	var nodes corev1.NodeList
	if err := a.Live.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	for _, n := range nodes.Items {
		k.Nodes = append(k.Nodes, n.Name)
		_, known := inputs.Records.RecordOfNode(n.Name)
		if known || n.Labels[corev1.LabelOSStable] == "windows" {
			continue // what it reports is no evidence against another host either, and it writes its label itself
		}
		for _, address := range n.Status.Addresses {
			k.Reserved = append(k.Reserved, address.Address)
		}
	}
	for _, n := range inputs.All {
		if n.Backing == render.BackingMachine {
			k.Reserved = append(k.Reserved, append([]string{n.Address}, n.Addresses...)...)
		}
	}
	k.Reserved = append(k.Reserved, inputs.Reserved.Names...)
	k.Domains, k.Networks = inputs.Reserved.Domains, inputs.Reserved.Networks
	k.Others = otherHosts(inputs, record.OfEntry(h.Address))
	return nil
}

// otherHosts are the names and addresses of other hosts than one: what the resolver says of their entries, and their records. Addresses in a record count
// where nothing newer is known.
func otherHosts(inputs *desired.Hosts, than record.ID) []string {
	var list []string
	current := map[record.ID]bool{}
	for _, n := range inputs.All {
		if id := gather.HostID(n); id != than && n.Backing != render.BackingNode {
			list = append(list, n.Addresses...)
			current[id] = len(n.Addresses) > 0
		}
	}
	for _, id := range inputs.Records.IDs() {
		if id == than {
			continue
		}
		r, _ := inputs.Records.RecordByID(id)
		list = append(list, r.Node, r.MachineName, r.Entry)
		if !current[id] {
			list = append(list, append(strings.Fields(r.Resolved), r.Address)...)
		}
	}
	return list
}

// reachOtherAddresses reaches a host at the addresses that it asks for besides its entry, also at those that the resolver gives its entry: a host may write
// its own record in the DNS. Where it does not answer under its pinned key, the address is not its own.
func (a *Approver) reachOtherAddresses(
	ctx context.Context, csr *certificatesv1.CertificateSigningRequest, inputs *desired.Hosts, entry remote.Target, h certificates.Host, k *certificates.Known,
) (certificates.Host, error) {
	if len(certificates.AddressesToReach(csr, h, *k)) == 0 {
		return h, nil
	}
	k.Reserved = append(k.Reserved, a.resolveReserved(ctx, inputs.Reserved)...)
	// At a first contact, whoever answers at the address would be taken for the host.
	switch r, _, err := a.Records.GetRecord(ctx, record.ID(entry.ID)); {
	case err != nil:
		return h, err
	case r.HostKey == "":
		return h, errNotPinned
	}
	for _, address := range certificates.AddressesToReach(csr, h, *k) {
		t, err := a.Hosts.TargetOf(record.ID(entry.ID), entry.User, address.String())
		if err != nil {
			return h, err
		}
		facts, err := a.Hosts.AskAtOtherAddress(ctx, t)
		if err != nil || facts.HostName != h.Facts.HostName { // copies of one machine have one host key
			a.Log.Info("a host is not reached at an address that it asks a certificate for",
				"csr", csr.Name, "host", h.ID(), "address", address, "answers", facts.HostName, "error", err)
			break
		}
		h.Reached = append(slices.Clip(h.Reached), address.String())
	}
	return h, nil
}

// errNotPinned ends an attempt while the key of a host is pinned for its address alone.
var errNotPinned = errors.New("its host key is not in its record yet")

// routeLabel is a name below the domain of routes: that of the console. All of them have the same addresses.
const routeLabel = "console-openshift-console."

// resolveReserved returns the addresses that the resolver gives the names of the API server and of routes: where the load balancers are not the cluster's own,
// nothing else says them.
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
