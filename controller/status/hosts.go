package status

import (
	"cmp"
	"slices"

	"wmco/bundle"
)

// Host is a host that is not a node with its bundle: one that has not joined, waits for adoption or is removed, or whose node needs attention.
type Host struct {
	// Name is that of the Machine, the entry of windows-instances, or the Node.
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	// State says what kind of attention it needs, Reason why, Message what happened and Fix what to do.
	State   HostState `json:"state"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Fix     string    `json:"fix,omitempty"`
	// Log is the end of the log of the service because of which the host was rolled back.
	Log bundle.LogTail `json:"log,omitzero"`
}

// HostState is what kind of attention a host needs.
type HostState string

const (
	// HostFailed means that a step failed: the host cannot join, be cleaned up, or apply its bundle. It is tried again.
	HostFailed HostState = "Failed"
	// HostSilent means that the node agent of the host does not report.
	HostSilent HostState = "Silent"
	// HostRefused means that the newest bundle of the host's node is refused. It has what was published before.
	HostRefused HostState = "Refused"
	// HostWaiting means that a person, or another program, has to do something first.
	HostWaiting HostState = "Waiting"
	// HostRemoving means that the host is being removed, and that nothing is wrong.
	HostRemoving HostState = "Removing"
	// HostJoining means that the host is becoming a node, and that nothing is wrong.
	HostJoining HostState = "Joining"
)

// HostStates returns every state, the most severe first: in this order hosts are listed.
func HostStates() []HostState {
	return []HostState{HostFailed, HostSilent, HostRefused, HostWaiting, HostRemoving, HostJoining}
}

// MaxHosts is how many hosts are listed.
const MaxHosts = 100

// SortHosts returns the hosts as they are listed: the most severe first, then by name, at most MaxHosts.
func SortHosts(hosts []Host) []Host {
	hosts = slices.Clone(hosts)
	slices.SortStableFunc(hosts, func(a, b Host) int {
		return cmp.Or(cmp.Compare(slices.Index(HostStates(), a.State), slices.Index(HostStates(), b.State)), cmp.Compare(a.Name, b.Name))
	})
	return hosts[:min(len(hosts), MaxHosts)]
}

// isDegraded reports whether a person has to look at the host.
func (h Host) isDegraded() bool {
	switch h.State {
	case HostFailed, HostSilent, HostRefused:
		return true
	case HostWaiting, HostRemoving, HostJoining:
	}
	return false
}

// isMoving reports whether the host changes by itself.
func (h Host) isMoving() bool { return h.State == HostRemoving || h.State == HostJoining }
