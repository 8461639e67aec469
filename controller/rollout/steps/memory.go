package steps

import (
	"maps"
	"sync"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// memory is what this process knows of nodes and their annotations do not have, by name. A process that starts knows nothing but what the one before it has
// written on the Nodes. The time in which there was none, or it was frozen, is held against no node.
type memory struct {
	mu    sync.Mutex
	nodes map[string]*nodeMemory
}

// nodeMemory is that of one node. One goroutine at a time uses it.
type nodeMemory struct {
	// written is the Node as this executor wrote it, until the cache has it; nil if that has.
	written *windowsnode.Node
	// text is the digest of the annotation that this process has written last. One that the agent refuses all the same is not written again: its
	// report has the reason.
	text bundle.Digest
	// signed are the bundles that the node was told of: the signed one in its annotation, and the one before it while the agent still reports it.
	signed []published.Desired
	// newest is the counter of the newest that its annotation has had.
	newest published.Counter
	// watch is for how long what the Node says has lasted; it was observed last at observed, a time of the monotonic clock.
	watch    plan.Watch
	observed *time.Duration
	// ready are the pods of a canary before its change.
	ready readyBefore
}

// ofNode returns the memory of a node.
func (m *memory) ofNode(name string) *nodeMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.nodes[name]
	if !ok {
		if m.nodes == nil {
			m.nodes = map[string]*nodeMemory{}
		}
		n = &nodeMemory{}
		m.nodes[name] = n
	}
	return n
}

// retainNodes forgets all nodes but these.
func (m *memory) retainNodes(nodes map[string]windowsnode.Node) {
	maps.DeleteFunc(m.nodes, func(name string, _ *nodeMemory) bool { _, ok := nodes[name]; return !ok })
}

// observeNode notes what a node says now, and returns for how long that has lasted.
func (m *nodeMemory) observeNode(n plan.Node, now time.Duration) plan.Seen {
	var passed time.Duration
	if m.observed != nil {
		passed = min(now-*m.observed, heartbeat.LongestLook)
	}
	m.observed = &now
	return m.watch.ObserveNode(n, passed)
}
