package main

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/mirrors"
	"wmco/render/review"
)

// exampleJSON is the example that the program has.
//
//go:embed example.json
var exampleJSON []byte

// example are the inputs of one node, and changes of them.
type example struct {
	Cluster clusterJSON
	Node    render.Node
	Changes []change
}

// change is a change of the cluster.
type change struct {
	Title string
	// Cluster has the fields that change.
	Cluster json.RawMessage
}

// clusterJSON is a cluster without its secrets, which JSON does not show. It has no proxy.
type clusterJSON struct {
	render.Cluster
	Proxy     *struct{} `json:",omitempty"`
	Bootstrap struct{ CA string }
	Exporter  struct{ Certificate string }
	Mirrors   mirrorsJSON
}

type mirrorsJSON struct {
	mirrors.Inputs
	PullSecret *struct{} `json:",omitempty"`
}

// withoutSecrets returns the kept parts of a cluster.
func withoutSecrets(c render.Cluster) clusterJSON {
	kept := clusterJSON{Cluster: c, Mirrors: mirrorsJSON{Inputs: c.Mirrors}}
	kept.Bootstrap.CA, kept.Exporter.Certificate = c.Bootstrap.CA, c.Exporter.Certificate
	return kept
}

// clusterInputs returns the cluster with stand-ins of its secrets, as one from a must-gather.
func (c clusterJSON) clusterInputs() render.Cluster {
	all := c.Cluster
	all.Copies = true
	all.Bootstrap = render.Bootstrap{CA: c.Bootstrap.CA, Token: bundle.NewStandIn("the token of the bootstrapper")}
	all.Exporter = render.KeyPair{Certificate: c.Exporter.Certificate, Key: bundle.NewStandIn("the key of the exporter")}
	all.Mirrors = c.Mirrors.Inputs
	all.Mirrors.PullSecret = bundle.NewStandIn("the pull secret")
	return all
}

func readExample(data []byte) (example, error) {
	var e example
	if err := json.Unmarshal(data, &e); err != nil {
		return example{}, fmt.Errorf("reading the example: %w", err)
	}
	return e, nil
}

// changedNode renders the node after a change.
func (e example) changedNode(c change) (review.Node, error) {
	after := e.Cluster
	if err := json.Unmarshal(c.Cluster, &after); err != nil {
		return review.Node{}, fmt.Errorf("reading the change %q: %w", c.Title, err)
	}
	return renderNode(after.clusterInputs(), e.Node)
}
