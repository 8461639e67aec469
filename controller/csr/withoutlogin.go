package csr

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/csr/certificates"
	"wmco/controller/gather"
)

// withResolvedNames returns the known facts, with the resolver's answers for a host whose Node waits for adoption in
// place of facts: such a host is not reached. It reports whether the resolver gives the entry the name of the Node,
// without which nothing connects the two but what the Node reports.
func (a *Approver) withResolvedNames(ctx context.Context, h certificates.Host, k certificates.Known,
	reserved gather.Reserved) (certificates.Known, bool, error) {
	var node corev1.Node
	if err := a.Live.Get(ctx, client.ObjectKey{Name: h.Name}, &node); err != nil {
		return k, false, client.IgnoreNotFound(err)
	}
	if !published.WaitsForAdoption(node.Annotations) {
		return k, false, nil
	}
	h.Lookups = a.resolveAddress(ctx, h.Address)
	if !slices.ContainsFunc(append(h.Lookups, h.Address), func(name string) bool { return isNameOfNode(name, h.Name) }) {
		return k, false, nil
	}
	// Its addresses are those of the resolver: so are those of the API server and of routes.
	k.Reserved = append(slices.Clip(k.Reserved), a.resolveReserved(ctx, reserved)...)
	h.Facts, h.Reached = bundle.Facts{Schema: bundle.FactsSchema, HostName: h.Name}, h.Lookups
	k.Hosts = slices.Clone(k.Hosts)
	k.Hosts[slices.IndexFunc(k.Hosts, func(other certificates.Host) bool { return other.ID() == h.ID() })] = h
	return k, true, nil
}

// isNameOfNode reports whether a DNS name is that of a Node, which may have its first label alone.
func isNameOfNode(name, node string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	label, _, _ := strings.Cut(name, ".")
	return strings.EqualFold(strings.TrimSuffix(name, "."), node) || strings.EqualFold(label, node)
}
