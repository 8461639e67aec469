package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/desired"
	"wmco/controller/publish"
	"wmco/render"
)

// recheck is how long after a publication the cluster is compared again although nothing was seen to change.
const recheck = 10 * time.Minute

// publisher publishes the bundles of all joined nodes.
type publisher struct {
	source    desired.Source
	publisher *publish.Publisher
	log       logr.Logger
	// tell says on an object that people look at why nothing is published.
	tell func(reason, message string)
}

// Reconcile renders every node once and publishes what differs. Inputs that are refused leave everything as it is published.
func (p *publisher) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	hosts, err := desired.Read(ctx, p.source)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the inputs: %w", err)
	}
	if only := blocking(hosts.Findings); len(only) > 0 {
		p.refused(only)
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	wanted, err := p.wanted(hosts)
	if err != nil {
		return reconcile.Result{}, err
	}
	changes, err := p.publisher.Publish(ctx, wanted)
	if !changes.IsZero() {
		p.log.Info("published", "nodes", len(changes.Nodes), "secrets", len(changes.Create), "deleted", len(changes.Delete), "checked", len(changes.Check))
	}
	return reconcile.Result{RequeueAfter: recheck}, err
}

// blocking are the findings that keep everything as it is: errors, and inputs whose bundles may only be shown. A host whose name
// cannot be used is left out, and concerns no other.
func blocking(findings bundle.Findings) bundle.Findings {
	errs := slices.DeleteFunc(slices.Clone(findings), func(f bundle.Finding) bool { return f.Severity != bundle.SeverityError || f.Node != "" })
	return append(errs, desired.PreviewOnly(findings)...)
}

func (p *publisher) refused(findings bundle.Findings) {
	first := findings[0]
	message := fmt.Sprintf("%s %s: %s (fix: %s)", first.Object.String(), first.Field, first.Message, first.Fix)
	if n := len(findings) - 1; n > 0 {
		message += fmt.Sprintf("; and %s", bundle.Count(n, "more finding"))
	}
	p.log.Info("the inputs are refused, what is published stays", "reason", first.Reason, "message", message)
	p.tell(first.Reason, "the inputs are refused, what is published stays: "+message)
}

// wanted returns the bundles of the nodes that have joined and whose facts are known. The others keep what they have; what is
// wrong with one node does not concern the others.
func (p *publisher) wanted(hosts *desired.Hosts) ([]publish.Wanted, error) {
	joined := slices.DeleteFunc(slices.Clone(hosts.All), func(n render.Node) bool { return n.Name == "" || n.Facts.IsZero() })
	var list []publish.Wanted
	clusters := map[bundle.Digest]*published.Packed{}
	for _, n := range joined {
		rendered, _, err := hosts.Render([]render.Node{n})
		if err != nil {
			return nil, err
		}
		r := rendered[0]
		if r.Own.Refused() {
			p.log.Info("the bundle of a node is refused, what is published for it stays", "node", n.Name, "reason", r.Own.Sorted()[0].Reason, "message", r.Own.Sorted()[0].Message)
			continue
		}
		w, err := packed(r, clusters)
		if err != nil {
			return nil, fmt.Errorf("packing the bundle of %s: %w", n.Name, err)
		}
		list = append(list, w)
	}
	return list, nil
}

// packed packs a bundle. A cluster layer is packed once for all nodes that share it.
func packed(r desired.Rendered, clusters map[bundle.Digest]*published.Packed) (publish.Wanted, error) {
	b := r.Bundle
	if clusters[b.ClusterDigest] == nil {
		p, err := published.Pack(b.Cluster)
		if err != nil {
			return publish.Wanted{}, err
		}
		clusters[b.ClusterDigest] = &p
	}
	own, err := published.Pack(b.Node)
	if err != nil {
		return publish.Wanted{}, err
	}
	return publish.Wanted{Node: r.Node.Name, Bundle: b.Digest, Cluster: clusters[b.ClusterDigest], Own: own}, nil
}
