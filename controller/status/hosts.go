package status

import (
	"cmp"
	"slices"

	"wmco/bundle"
	"wmco/bundle/nodestate"
)

// Host is a host that is not a node with its bundle: one that has not joined, waits for adoption or is removed, or
// whose node needs attention.
type Host struct {
	// Name is that of the Machine, the entry of windows-instances, or the Node.
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	// State is what kind of attention it needs, Reason why, Message what happened and Fix what to do.
	State   nodestate.State `json:"state"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Fix     string          `json:"fix,omitempty"`
	// Log is the end of the log of the service because of which the host was rolled back.
	Log bundle.LogTail `json:"log,omitzero"`
}

// MaxHosts is how many hosts are listed.
const MaxHosts = 100

// SortHosts returns the hosts as they are listed: the most severe first, then by name, at most MaxHosts.
func SortHosts(hosts []Host) []Host {
	hosts = slices.Clone(hosts)
	slices.SortStableFunc(hosts, func(a, b Host) int {
		return cmp.Or(nodestate.Compare(b.State, a.State), cmp.Compare(a.Name, b.Name))
	})
	return hosts[:min(len(hosts), MaxHosts)]
}

// isMoving reports whether the host is still changing.
func (h Host) isMoving() bool {
	return h.State == nodestate.Removing || h.State == nodestate.Joining || h.State == nodestate.Updating
}
