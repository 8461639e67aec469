package steps

import (
	"maps"
	"time"

	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// observations are what this process has observed of each node, by name, and for how long. A process that starts has observed nothing: what the
// one before it has noted stands on the Node, and the time in which there was none, or it was frozen, is held against no node.
type observations map[string]*observation

type observation struct {
	plan.Watch
	// at is when the node was observed last.
	at time.Duration
}

// observeNode observes a node, and returns for how long what it says has lasted.
func (o observations) observeNode(n plan.Node, now time.Duration) plan.Seen {
	last, known := o[n.Name]
	if !known {
		last = &observation{at: now}
		o[n.Name] = last
	}
	passed := min(now-last.at, heartbeat.LongestLook)
	last.at = now
	return last.ObserveNode(n, passed)
}

// retainNodes forgets the nodes that are gone.
func (o observations) retainNodes(nodes map[string]windowsnode.Node) {
	maps.DeleteFunc(o, func(name string, _ *observation) bool { _, ok := nodes[name]; return !ok })
}
