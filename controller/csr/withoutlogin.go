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
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
)

// withoutLogin returns the known facts for a host that is not asked: a recorded one is judged by its record, and one whose
// Node waits for adoption by the resolver's answers. Where that is not enough, the host is asked.
func (a *Approver) withoutLogin(ctx context.Context, h certificates.Host, k certificates.Known,
	inputs *desired.Hosts) (certificates.Known, error) {
	var node corev1.Node
	if err := a.Live.Get(ctx, client.ObjectKey{Name: h.Name}, &node); err != nil {
		return k, client.IgnoreNotFound(err)
	}
	ok := false
	if _, recorded := inputs.Records.RecordOfNode(h.Name); recorded {
		r, _, err := a.Records.GetRecord(ctx, record.OfEntry(h.Address))
		if err != nil {
			return k, err
		}
		ok = r.IsNode(node.Name, node.UID) && r.HostKey != "" && !r.Adopting
		h.Reached = strings.Fields(r.Served)
	} else if published.WaitsForAdoption(node.Annotations) {
		// The resolver gives the entry the name of the Node: otherwise nothing but the Node's report connects the two.
		h.Lookups = a.resolveAddress(ctx, h.Address)
		ok = slices.ContainsFunc(append(h.Lookups, h.Address), func(name string) bool { return isNameOfNode(name, h.Name) })
		h.Reached = h.Lookups
	}
	if !ok {
		return k, nil
	}
	if len(h.Reached) > 0 { // it may be an address that the API server and routes have got since
		k.Reserved = append(slices.Clip(k.Reserved), a.resolveReserved(ctx, inputs.Reserved)...)
	}
	h.Facts = bundle.Facts{Schema: bundle.FactsSchema, HostName: h.Name}
	k.Hosts = slices.Clone(k.Hosts)
	k.Hosts[slices.IndexFunc(k.Hosts, func(other certificates.Host) bool { return other.ID() == h.ID() })] = h
	return k, nil
}

// noteServed records the addresses at which a host was reached that gets a serving certificate, so that its renewal
// needs no login.
func (a *Approver) noteServed(ctx context.Context, v certificates.Verdict) error {
	if v.Decision != certificates.Approve || len(v.Host.Reached) == 0 {
		return nil
	}
	return a.Records.UpdateRecord(ctx, record.OfEntry(v.Host.Address), func(r record.Record) (record.Record, error) {
		if r.Node == v.Host.Name {
			r.Served = strings.Join(v.Host.Reached, " ")
		}
		return r, nil
	})
}

// isNameOfNode reports whether a DNS name is that of a Node, which may have its first label alone.
func isNameOfNode(name, node string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	label, _, _ := strings.Cut(name, ".")
	return strings.EqualFold(strings.TrimSuffix(name, "."), node) || strings.EqualFold(label, node)
}
