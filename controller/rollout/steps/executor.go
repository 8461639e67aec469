package steps

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// Rendered are the rendered bundles of all nodes at one moment.
type Rendered struct {
	// Wanted has no node whose bundle is refused.
	Wanted   map[string]layers.Wanted
	Platform bundle.Platform
	Policy   plan.Policy
	// Closed returns until when changes wait for a window, by the time of day; nil is for windows that are always open.
	Closed func(now time.Time) plan.Closed
	// Provenance returns that of the bundle of a node, which is made again: it is asked for where a node has failed.
	// Nil knows none.
	Provenance func(node string) bundle.Provenance
	// Urgent finds what must not wait for nodes with a cluster layer; nil is nothing.
	Urgent func(has bundle.Layer) (Urgent, error)
	// Ready are the urgent bundles whose layers are published.
	Ready map[bundle.Digest]bool
	// Held reports whether not all layers of a bundle can be read by nodes: none is told of it. Nil holds none.
	Held func(layers.Wanted) bool
	// From returns what of a Node its bundle is rendered from. A bundle that was rendered from something else is not
	// published any more: the next rendering knows what it was not made from, such as the networks of a host that
	// joins. Nil compares nothing.
	From func(windowsnode.Node) bundle.Digest
}

// isWithheld reports whether a node is not told of its rendered bundle now: nodes cannot read all its layers yet,
// or it was made from another state of the Node.
func (r Rendered) isWithheld(w layers.Wanted, node windowsnode.Node) bool {
	return r.Held != nil && r.Held(w) || w.From != "" && r.From != nil && r.From(node) != w.From
}

// Executor makes the steps of one cluster's rollout. Its methods are not for use by several goroutines.
type Executor struct {
	// Nodes reads Windows Nodes and Machines from a cache, unstructured. Live asks the API server.
	Nodes, Live client.Reader
	// Decoded are the Nodes of the cache; nil decodes them at each call.
	Decoded *nodelist.Cache
	Client  client.Client
	// Layers are those that nodes have and get.
	Layers *layers.Cache
	// Pods lists the pods of nodes.
	Pods      kubernetes.Interface
	Drains    *drains.Drains
	Notary    Notary
	Namespace string
	// Deployment is the object of events about the whole fleet.
	Deployment *corev1.ObjectReference
	Events     events.EventRecorder
	Log        logr.Logger
	// Now is the time of day, which is written on Nodes. Elapsed is a monotonic clock, which turns are decided by.
	Now     func() time.Time
	Elapsed func() time.Duration
	// Try does one thing, unless it has failed a moment ago (base.Pauses). What fails for one Node keeps no other one
	// waiting. Nil tries at each call.
	Try func(ctx context.Context, what string, do func(context.Context) error) error
	// Heartbeats is for how long the agent of a node has been silent.
	Heartbeats windowsnode.Silence

	// The knowledge between two calls: of nodes, of layers by their digests, and the last report about the fleet.
	memory    memory
	compared  compared
	lastFleet fleetStatus
}

// Notary signs desired bundles, and knows what it has signed (controller/keys/signing).
type Notary interface {
	// BeginTerm makes signatures from now on newer than all before.
	BeginTerm(ctx context.Context) error
	// SignDesired returns the text of the annotation for a Node.
	SignDesired(node published.NodeID, d published.Desired) (string, error)
	// OpenDesired decodes an annotation, if it is signed for this Node.
	OpenDesired(node published.NodeID, text string) (published.Desired, error)
}

// tryForNode does one thing, unless its pause has not passed.
func (e *Executor) tryForNode(ctx context.Context, what string, do func(context.Context) error) error {
	if e.Try == nil {
		return do(ctx)
	}
	return e.Try(ctx, what, do)
}

// CachedNodes returns the Windows Nodes by name as the cache has them, with what this executor has written since. They
// are only read.
func (e *Executor) CachedNodes(ctx context.Context) (map[string]windowsnode.Node, error) {
	list, err := e.Decoded.ListCached(ctx, e.Nodes)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]windowsnode.Node, len(list))
	for _, node := range list {
		nodes[node.Name] = e.newestNode(node)
	}
	return nodes, nil
}

// newestNode returns what this executor has written on the Node, while the cache is behind. Two steps are not made
// where one is allowed.
func (e *Executor) newestNode(node windowsnode.Node) windowsnode.Node {
	m := e.memory.ofNode(node.Name)
	if m.written == nil {
		return node
	}
	if order, err := resourceversion.CompareResourceVersion(node.ResourceVersion,
		m.written.ResourceVersion); err == nil && order < 0 && node.UID == m.written.UID {
		return *m.written
	}
	m.written = nil
	return node
}

// liveNodes returns the Windows Nodes by name as the API server has them.
func (e *Executor) liveNodes(ctx context.Context) (map[string]windowsnode.Node, error) {
	list, err := nodelist.ListLive(ctx, e.Live)
	if err != nil {
		return nil, err
	}
	nodes := map[string]windowsnode.Node{}
	for _, n := range list {
		nodes[n.Name] = n
	}
	return nodes, nil
}
