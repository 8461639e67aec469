package rollout

import (
	"cmp"

	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/status"
)

func refusedStatus(r refusedNode) status.Refused {
	return status.Refused{Node: r.name, Reason: r.Reason, Message: published.Shorten(r.Message), Fix: r.Fix}
}

// statusOfHost returns what a node needs; false for one that has its bundle, or gets it without help.
func statusOfHost(r fleet.Row) (status.Host, bool) {
	h := status.Host{Name: r.Node, Node: r.Node, State: r.State, Reason: r.Reason,
		Message: published.Shorten(r.Message), Fix: published.Shorten(r.Fix), Log: r.Log}
	switch r.State {
	case nodestate.Waiting:
		if r.Reason == string(published.StateNeedsPermission) { // it is its turn next: condition RolledOut
			return h, false
		}
	case nodestate.Updated, nodestate.Stale, nodestate.Updating:
		return h, false
	case nodestate.Joining, nodestate.Removing, nodestate.Refused, nodestate.NotReporting, nodestate.Degraded:
	}
	h.Reason = cmp.Or(h.Reason, string(r.State))
	return h, true
}

func counterOfState(n *status.Nodes, s nodestate.State) *int {
	switch s {
	case nodestate.Updated:
		return &n.Updated
	case nodestate.Stale:
		return &n.Stale
	case nodestate.Updating:
		return &n.Updating
	case nodestate.Waiting:
		return &n.Waiting
	case nodestate.Degraded:
		return &n.Degraded
	case nodestate.NotReporting:
		return &n.NotReporting
	case nodestate.Joining, nodestate.Removing, nodestate.Refused:
	}
	return &n.Joining
}
