// Package nodestate holds the states of Windows nodes and hosts that people see: in `wmco status`, the
// WindowsNodesStatus, metrics, alerts and docs. Each has one name and one place in their order (docs/decisions/0028).
package nodestate

import (
	"cmp"
	"slices"
	"strings"
)

// State is where a Windows node, or a host that becomes one, is.
type State string

const (
	// Updated means that the node has the bundle that is published for it.
	Updated State = "Updated"
	// Stale means that the node agent has not acted on the published bundle yet.
	Stale State = "Stale"
	// Updating means that the node applies the bundle, or that it is its turn in the rollout.
	Updating State = "Updating"
	// Joining means that the host becomes a node, and that nothing is wrong.
	Joining State = "Joining"
	// Removing means that the host is drained and cleaned up, and that nothing is wrong.
	Removing State = "Removing"
	// Waiting means that it goes on when something else has happened: a turn, a boot, an answer of a person.
	Waiting State = "Waiting"
	// Refused means that the newest bundle of the node is refused. It has what was published before, if anything was.
	Refused State = "Refused"
	// NotReporting means that the node agent does not report.
	NotReporting State = "NotReporting"
	// Degraded means that a step failed: the host cannot join or be cleaned up, or the bundle could not be applied, or
	// was rolled back.
	Degraded State = "Degraded"
)

// All returns every state in their order: the most urgent work first, states that need a person last.
func All() []State {
	return []State{Updated, Stale, Updating, Joining, Removing, Waiting, Refused, NotReporting, Degraded}
}

// Names returns the names of all states, in their order.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, string(s))
	}
	return names
}

// Compare orders states as All does; one that All does not have comes first.
func Compare(a, b State) int { return cmp.Compare(slices.Index(All(), a), slices.Index(All(), b)) }

// NeedsAttention reports whether a person has to look at a node or host in the state; the condition Degraded is true
// for it.
func (s State) NeedsAttention() bool {
	switch s {
	case Refused, NotReporting, Degraded:
		return true
	case Updated, Stale, Updating, Joining, Removing, Waiting:
	}
	return false
}

// formerNames are those of the release before, in lower case. The next release does not know them.
var formerNames = map[string]State{
	"current": Updated, "applying": Updating, "unpublished": Joining, "silent": NotReporting, "failed": Degraded,
}

// Parse returns the state of a name, whatever its case. Names of the release before are known: isFormer is true for one
// of them. Known is false for any other text.
func Parse(name string) (state State, isFormer, known bool) {
	for _, s := range All() {
		if strings.EqualFold(string(s), name) {
			return s, false, true
		}
	}
	state, isFormer = formerNames[strings.ToLower(name)]
	return state, isFormer, isFormer
}

// UnmarshalText reads a name. That of the release before becomes the one of today; any other text is kept, as a newer
// operator may know more states.
func (s *State) UnmarshalText(text []byte) error {
	*s = State(text)
	for former, now := range formerNames {
		if strings.EqualFold(former, string(text)) {
			*s = now
		}
	}
	return nil
}
