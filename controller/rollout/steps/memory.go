package steps

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// memory is what this process knows of nodes and their annotations do not have, by name. A process that starts knows
// nothing but what the one before it has written on the Nodes. The time in which there was none, or it was frozen, is
// held against no node.
type memory struct {
	mu    sync.Mutex
	nodes map[string]*nodeMemory
}

// nodeMemory is that of one node. One goroutine at a time uses it.
type nodeMemory struct {
	// written is the Node as this executor wrote it, until the cache has it; nil if that has.
	written *windowsnode.Node
	// text is the digest of the annotation that this process has written last. One that the agent refuses all the same
	// is not written again: its report has the reason.
	text bundle.Digest
	// signed are the bundles that the node was told of: the signed one in its annotation, and the one before it while
	// the agent still reports it.
	signed []published.Desired
	// newest is the counter of the newest that its annotation has had. Outdated reports whether the annotation is an earlier one.
	newest   published.Counter
	outdated bool
	// removed is the UID of the Node that was told to end; empty if none was. Whoever puts an earlier annotation back does
	// not take that back.
	removed types.UID
	// watch is for how long the Node's state has lasted; it was observed last at observed, a time of the monotonic
	// clock.
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

// observeNode notes the node's state, and returns for how long that has lasted.
func (m *nodeMemory) observeNode(n plan.Node, now time.Duration) plan.Seen {
	var passed time.Duration
	if m.observed != nil {
		passed = min(now-*m.observed, heartbeat.LongestLook)
	}
	m.observed = &now
	return m.watch.ObserveNode(n, passed)
}

// errOutdated means that others have written an earlier signed annotation again.
var errOutdated = errors.New("an earlier annotation was written again")

// noteSigned notes what stands signed on a Node, and forgets what its agent does not have any longer. It reports
// whether what stands there is what this operator published last, as far as it knows: an earlier one that was put back
// is no evidence.
func (m *nodeMemory) noteSigned(node windowsnode.Node, on published.Desired, has published.Report) bool {
	if on.Remove { // what its agent refuses is not written again: the host is cleaned up over SSH then
		m.removed = node.UID
		return true
	}
	refused := has.Refused != "" && has.Refused == bundle.Of([]byte(node.Annotations[published.DesiredAnnotation])) && m.text != has.Refused
	m.outdated = on.Bundle != "" && (refused || on.Counter().Compare(m.newest) < 0)
	if m.outdated {
		return false
	}
	m.signed = slices.DeleteFunc(m.signed, func(d published.Desired) bool {
		return d.Bundle != has.Applied || d.Bundle == on.Bundle
	})
	if on.Bundle != "" {
		m.signed, m.newest = append(m.signed, on), on.Counter()
	}
	return true
}

// signedDesired returns the desired state that this operator has signed for the node's bundle; nil if there is none. A
// report of a node only chooses among signed ones.
func (m *nodeMemory) signedDesired(has bundle.Digest) *published.Desired {
	i := slices.IndexFunc(m.signed, func(d published.Desired) bool { return d.Bundle == has })
	if i < 0 {
		return nil
	}
	return &m.signed[i]
}

// readyBefore are the pods of a canary that were Ready when its change was permitted, by UID.
type readyBefore struct {
	bundle bundle.Digest
	pods   map[types.UID]bool
}
