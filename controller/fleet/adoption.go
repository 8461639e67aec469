package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// IsAdoptionWanted reports whether a node of another operator is to be adopted: the settings say so for all, or its
// annotations ask for it.
func IsAdoptionWanted(s render.Settings, annotations map[string]string) bool {
	return s.Adoption == render.AdoptionRollout || annotations[published.AdoptAnnotation] == published.AdoptTrue
}

// AdoptFix returns how a node of another operator is adopted.
func AdoptFix(node string) string {
	return "wmco adopt " + node + " (docs/takeover.md)"
}

// explainAdoption explains what keeps a node from its wanted adoption: to ask for it again changes nothing.
// Which Node a host is, the operator knows from the host's answer; before, it reports the problem of the host at the
// address. Its row stays: a Node can claim any address.
func (r *Row) explainAdoption(node windowsnode.Node, hosts []status.Host) {
	i := slices.IndexFunc(hosts, func(h status.Host) bool {
		isAt := func(a corev1.NodeAddress) bool { return a.Address == h.Address }
		return h.Reason != ReasonWaitingForAdoption &&
			(h.Node == r.Node || h.Node == "" && slices.ContainsFunc(node.Status.Addresses, isAt))
	})
	if i < 0 {
		r.Message, r.Fix = "adoption requested, not started yet; until it starts, the node gets no changes, "+
			"not even a rotated CA or pull secret", ""
		return
	}
	r.Reason, r.Message, r.Fix, r.Log = hosts[i].Reason, hosts[i].Message, hosts[i].Fix, hosts[i].Log
}
