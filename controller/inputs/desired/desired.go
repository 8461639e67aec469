// Package desired computes what the Windows hosts of a cluster should be. This is the one place that gathers the
// inputs, renders what nodes share, then each node, and joins the findings of all three.
//
//	Source --ReadHosts--> Hosts --SelectNamed, AssignToNodes--> some of them --RenderBundles--> bundles and findings
//
// It touches no host, and writes nothing but the key of this user (UserKey).
package desired

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/record"
	"wmco/payload"
	"wmco/payload/sources"
	"wmco/payload/store"
	"wmco/render"
)

// Source is where the inputs come from.
type Source struct {
	// Objects reads those of the cluster.
	Objects objects.Reader
	// Gather has options that the objects do not decide.
	Gather gather.Options
	// Strict refuses documents and fields that have no effect.
	Strict bool
	// Payload is a folder that make payload wrote. Without one, executables are named and have no digest.
	Payload string
	// Set is a payload that was read already; Payload is empty then.
	Set payload.Set
	// SigningKeys are the public keys with which the operator signs what it publishes, in PEM. Without them, as in
	// previews, bundles bring none.
	SigningKeys []byte
	// LoginKey is render.Options.LoginKey.
	LoginKey string
	// Image is render.Options.Image.
	Image string
	// Key makes the digests of secrets. Without one, as in previews, they are masked.
	Key bundle.Key
	// WithoutCredentials renders what does not depend on any (render.Cluster.WithoutCredentials).
	WithoutCredentials bool
	// RefuseStops refuses inputs with which no pod could start. Without it, whoever reads holds such a change
	// (controller/inputs/deletions), or lists what it adds (render/review).
	RefuseStops bool
	// Accepted are findings that are left as they are, beside those of the settings, and AcceptedIn the file that they
	// are in.
	Accepted   []render.AcceptedFinding
	AcceptedIn string
}

// Hosts are the Windows hosts of one cluster, and what renders their bundles.
type Hosts struct {
	// All has those with a Node first, by name, then the others by address.
	All []render.Node
	// Instances are the entries of windows-instances, also those that stand for no host.
	Instances []gather.Instance
	Cluster   render.Cluster
	// Reserved are the names and addresses of the cluster, which no host has as its own.
	Reserved gather.Reserved
	// Findings are those of the objects, the payload and the cluster. Those of a single host come from RenderBundles.
	Findings bundle.Findings
	// Records say which host each Node is; none for those who only look.
	Records record.Set
	// LoginKey is the public key with which the operator logs in to hosts; empty for those who only look.
	LoginKey string
	// WithoutCredentials is that of the Source.
	WithoutCredentials bool
	// SigningKeys are those of the bundles, in PEM; empty where none are known.
	SigningKeys []byte
	accepted    []accepted
	// fleet is nil where the findings refuse the cluster.
	fleet *render.Fleet
}

// Rendered is one host with its bundle.
type Rendered struct {
	Node   render.Node
	Bundle render.Bundle
	// Own are the findings of this host alone, Findings those of the cluster too.
	Own, Findings bundle.Findings
}

// ReadHosts gathers the inputs and renders what hosts share. A cluster that cannot be read is a
// *gather.UnreachableError. What is wrong with an object or the payload is a finding.
func ReadHosts(ctx context.Context, s Source) (*Hosts, error) {
	gathered, err := gather.Gather(ctx, s.Objects, s.Gather)
	if err != nil {
		return nil, err
	}
	set, refused := s.Set, bundle.Findings(nil)
	if s.Payload != "" {
		if set, refused, err = readPayload(ctx, s.Payload); err != nil {
			return nil, err
		}
	}
	if s.WithoutCredentials {
		gathered.Cluster = gathered.Cluster.WithoutCredentials()
	}
	fleet, found, err := render.NewFleet(gathered.Cluster,
		render.Options{Payload: set, Key: s.Key, SigningKeys: s.SigningKeys, LoginKey: s.LoginKey, Image: s.Image})
	if err != nil {
		return nil, err
	}
	if s.Strict {
		gathered.Findings = gather.PromoteSilentFindings(gathered.Findings)
	}
	var records record.Set
	if s.Gather.Records != nil {
		records = *s.Gather.Records
	}
	h := &Hosts{
		Records: records, LoginKey: s.LoginKey, SigningKeys: s.SigningKeys, WithoutCredentials: s.WithoutCredentials,
		Reserved: gathered.Reserved,
		All:      gathered.Nodes, Instances: gathered.Instances, Cluster: gathered.Cluster,
		accepted: acceptedOf(s, gathered.Cluster), fleet: fleet,
	}
	h.Findings = withoutConsequences(slices.Concat(refused, gathered.Findings, found))
	if s.RefuseStops {
		h.Findings = render.StopsAsErrors(h.Findings)
	}
	h.Findings = h.MarkAccepted(h.Findings.Sorted())
	return h, nil
}

// readPayload reads the executables of a folder. What is wrong with it is findings.
func readPayload(ctx context.Context, dir string) (payload.Set, bundle.Findings, error) {
	if dir == "" {
		return payload.Set{}, nil, nil
	}
	set, err := store.Read(ctx, dir)
	refused := (*store.RefusedError)(nil)
	if !errors.As(err, &refused) {
		return set, nil, err
	}
	var findings bundle.Findings
	for _, p := range refused.Problems {
		findings = append(findings, bundle.Finding{Severity: bundle.SeverityError, Reason: reason.PayloadInvalid,
			Object: bundle.Ref{Source: p.Path}, Message: p.Message, Fix: p.Fix})
	}
	return payload.Set{}, findings, nil
}

// ExecutableSources are where nodes fetch executables; without places where they fetch none.
func (h *Hosts) ExecutableSources() sources.List {
	if h.fleet == nil {
		return sources.List{}
	}
	return h.fleet.ExecutableSources()
}

// FetchOrder is what a host that has neither proxy nor CAs of the cluster fetches executables by; false where none of
// these can be fetched.
func (h *Hosts) FetchOrder(wanted map[bundle.Digest]bool) (sources.Order, bool) {
	o := sources.Order{List: h.ExecutableSources()}
	o.List.Executables = slices.DeleteFunc(slices.Clone(o.List.Executables), func(x sources.Executable) bool { return !wanted[x.Raw.Digest] })
	c := h.Cluster
	o.Proxy, o.TrustedCAs = sources.Proxy(c.Proxy), trustedCAs(c)
	return o, len(o.List.Places) > 0 && len(o.List.Executables) > 0
}

// UrgentInputs returns what must not wait for a node with a cluster layer.
func (h *Hosts) UrgentInputs(has bundle.Layer) (render.Urgent, error) {
	if h.fleet == nil {
		return render.Urgent{}, nil
	}
	return h.fleet.Urgent(has)
}

// RecordOf returns the id of the record of a host, and the record; an empty one where there is none.
func (h *Hosts) RecordOf(n render.Node) (record.ID, record.Record) {
	id := gather.HostID(n)
	r, _ := h.Records.RecordByID(id)
	return id, r
}

// RenderBundles renders the bundles of these hosts, and returns all findings: the cluster's, then those of each. With a
// finding of severity error, a bundle may be empty. Where the cluster is refused there is none.
func (h *Hosts) RenderBundles(nodes []render.Node) ([]Rendered, bundle.Findings, error) {
	return h.RenderBundlesSharing(nodes, func(bundle.Digest) (bundle.Layer, bool) { return bundle.Layer{}, false })
}

// RenderBundlesSharing is RenderBundles for who knows layers of an earlier rendering: a node layer that is the same
// again is the one that is known, and takes no more memory. The digest alone decides nothing: that of a secret content
// is not checked when a layer is read (archive.UnpackLayer).
func (h *Hosts) RenderBundlesSharing(nodes []render.Node, known func(bundle.Digest) (bundle.Layer, bool)) ([]Rendered,
	bundle.Findings, error) {
	if h.fleet == nil {
		return nil, h.Findings, nil
	}
	list, all := make([]Rendered, 0, len(nodes)), slices.Clone(h.Findings)
	for _, n := range nodes {
		b, own, err := h.fleet.Node(n)
		if err != nil {
			return nil, nil, err
		}
		own = h.MarkAccepted(own)
		if layer, ok := known(b.NodeDigest); ok && reflect.DeepEqual(layer, b.Bundle.Node) {
			b.Bundle.Node = layer
		}
		list, all = append(list, Rendered{Node: n, Bundle: b, Own: own}), append(all, own...)
	}
	unused := h.unusedAccepted(all, len(nodes) == len(h.All))
	shared := slices.Clip(slices.Concat(h.Findings, unused).Sorted())
	for i, r := range list {
		list[i].Findings = shared
		if len(r.Own) > 0 {
			list[i].Findings = slices.Concat(shared, r.Own).Sorted()
		}
	}
	return list, append(all, unused...).Sorted(), nil
}

// RenderProvenance returns which objects cause the entries of the bundle of a host; nil where it is refused.
func (h *Hosts) RenderProvenance(n render.Node) bundle.Provenance {
	list, _, err := h.RenderBundles([]render.Node{n})
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[0].Bundle.Provenance
}
