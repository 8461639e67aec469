// Package render is the pure function from the inputs of a cluster to the desired state of each Windows node.
//
//	Inputs --check--> findings
//	   |                            cluster layer, once per stage --.
//	   '--views--> contents --catalog-->                             >-- bundle
//	                                node layer, once per node ------'
//
// It never reads a file, a cluster, a clock or the environment: the same inputs give the same bytes on any machine.
package render

import (
	"fmt"
	"slices"
	"text/template"

	"wmco/bundle"
	"wmco/payload"
	"wmco/payload/sources"
	"wmco/render/mirrors"
)

// Options control how bundles are made.
type Options struct {
	// Key makes the digests of secrets. Nil, as in previews, masks them.
	Key bundle.Key
	// SigningKeys are the public keys of the operator, in PEM (published.Keys). Without them, as in previews, bundles
	// have no such file.
	SigningKeys []byte
	// LoginKey is the public half of the key with which the operator logs in to hosts, "ALGORITHM BASE64". Without it,
	// as in previews, bundles have no authorized keys but those that hosts are known to accept.
	LoginKey string
	// Payload has the digests and sizes of the executables. Without it, bundles only name them.
	Payload payload.Set
	// Image is the image that has the executables, REGISTRY/REPOSITORY@DIGEST, where the settings name none. Without
	// both, as in previews, bundles have no list of executables, and the operator copies them.
	Image string
}

// Fleet renders the nodes of one cluster. The layer that they share is rendered once per stage.
type Fleet struct {
	cluster Cluster
	masked  Cluster
	hosts   mirrors.Result
	// executables are where nodes fetch executables.
	executables sources.List
	options     Options
	rows        map[RowID]Row
	templates   *template.Template
	shared      map[bundle.Stage]shared
}

// shared is a cluster layer with its provenance and digest.
type shared struct {
	layer      bundle.Layer
	provenance bundle.Provenance
	digest     bundle.Digest
}

// Bundle is one node's bundle with its digests.
type Bundle struct {
	bundle.Bundle
	// Digest is the bundle's, ClusterDigest and NodeDigest are its layers'.
	Digest, ClusterDigest, NodeDigest bundle.Digest
}

// NewFleet checks the cluster's inputs and renders its layers. With findings of severity error, the fleet is nil. An
// error is a defect of this program, not of the inputs.
func NewFleet(c Cluster, o Options) (*Fleet, bundle.Findings, error) {
	hosts := c.hostsFiles()
	executables, unpullable := c.executableSources(o)
	findings := slices.Concat(
		c.checkInputs(), hosts.Findings, c.checkNodeImages(hosts), c.checkMirroredProviders(hosts), c.checkPinnedImages(), c.checkPayload(o.Payload), unpullable,
	)
	if findings.Refused() {
		return nil, findings.Sorted(), nil
	}
	set, err := parseTemplates()
	if err != nil {
		return nil, findings, err
	}
	f := &Fleet{
		cluster: c, masked: c.Masked(), hosts: hosts, executables: executables, options: o, rows: map[RowID]Row{}, templates: set,
		shared: map[bundle.Stage]shared{},
	}
	for _, r := range Catalog() {
		f.rows[r.ID] = r
	}
	for _, stage := range []bundle.Stage{bundle.StageJoin, bundle.StageJoined} {
		e := f.newEmitter(bundle.LayerCluster, stage, Node{})
		e.clusterViews()
		e.mirrorEntries()
		e.gatewayEntries()
		e.pullCredentialEntries()
		s, err := e.digestLayer()
		if err != nil {
			return nil, findings, fmt.Errorf("rendering the cluster layer of stage %s: %w", stage, err)
		}
		f.shared[stage] = s
	}
	return f, findings.Sorted(), nil
}

// Node renders the bundle of one node. With findings of severity error, the bundle is zero.
func (f *Fleet) Node(n Node) (Bundle, bundle.Findings, error) {
	findings := f.cluster.checkNode(n)
	if findings.Refused() {
		return Bundle{}, findings.Sorted(), nil
	}
	stage := n.Stage()
	cluster := f.shared[stage]
	e := f.newEmitter(bundle.LayerNode, stage, n)
	e.nodeViews()
	node, err := e.digestLayer()
	if err != nil {
		return Bundle{}, findings, fmt.Errorf("rendering %s: %w", n.ID(), err)
	}
	digest, err := bundle.DigestLayers(cluster.digest, node.digest)
	if err != nil {
		return Bundle{}, findings, fmt.Errorf("rendering %s: %w", n.ID(), err)
	}
	b := Bundle{
		Bundle: bundle.Bundle{Cluster: cluster.layer, Node: node.layer, Provenance: cluster.provenance.With(node.provenance)},
		Digest: digest, ClusterDigest: cluster.digest, NodeDigest: node.digest,
	}
	return b, findings.Sorted(), nil
}

// Render renders one node. For several nodes of a cluster, a Fleet shares the work.
func Render(in Inputs, o Options) (Bundle, bundle.Findings, error) {
	fleet, findings, err := NewFleet(in.Cluster, o)
	if err != nil || fleet == nil {
		return Bundle{}, findings, err
	}
	b, more, err := fleet.Node(in.Node)
	return b, append(findings, more...).Sorted(), err
}

func (f *Fleet) newEmitter(kind bundle.LayerKind, stage bundle.Stage, n Node) *emitter {
	return &emitter{
		cluster: f.cluster, masked: f.masked, hosts: f.hosts, executables: f.executables, node: n, stage: stage, rows: f.rows, templates: f.templates, options: f.options,
		layer: bundle.Layer{
			Schema: bundle.Schema, Kind: kind, Stage: stage, NodeName: n.nameIn(kind),
		}, provenance: bundle.Provenance{},
	}
}

// nameIn returns the name of the Node in a layer. The cluster layer has none, and an older agent would refuse it in the
// other one.
func (n Node) nameIn(kind bundle.LayerKind) string {
	if kind != bundle.LayerNode || n.OlderAgent {
		return ""
	}
	return n.Name
}

func (e *emitter) clusterViews() {
	e.tableEntries()
	e.hostEntries()
	e.proxyEntries()
	e.trustEntries()
	e.kubeconfigEntries()
	e.containerdEntries()
	e.kubeletEntries()
	e.exporterEntries()
	e.csiProxyEntries()
	e.agentEntries()
	e.pinnedImageEntries()
	e.executableListEntries()
}

func (e *emitter) nodeViews() {
	e.hostEntries()
	e.kubeletEntries()
	e.networkEntries()
	e.cloudEntries()
	e.keyEntries()
	e.policyEntries()
}

// digestLayer finishes and digests the layer.
func (e *emitter) digestLayer() (shared, error) {
	if err := e.normalizeLayer(); err != nil {
		return shared{}, err
	}
	digest, err := e.layer.Digest()
	return shared{layer: e.layer, provenance: e.provenance, digest: digest}, err
}
