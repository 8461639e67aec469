package configure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base/conditions"
	"wmco/controller/inputs/desired"
	"wmco/render"
)

// HostsJoined is the type of the condition that every host of the inputs is a node.
const HostsJoined = "HostsJoined"

// reasonJoining is its reason while hosts are on their way, or have not been tried since the operator started.
const reasonJoining = "Joining"

// mostNames is how many hosts a message names.
const mostNames = 10

// Unjoined is how far hosts were when they were last tried. It is for people alone: nothing is decided by it, and after a restart of the
// operator it is complete when every host has been tried again. The zero value knows none.
type Unjoined struct {
	// Changed, if set, is called when the condition is another one.
	Changed func()

	mu sync.Mutex
	// hosts are those that were kept from joining; settled those that have joined, or are not wanted any more.
	hosts   map[string]Progress
	settled map[string]bool
}

// Note notes how far a host is. While its reason stays, the first message does: those of connections have other ports every time.
func (u *Unjoined) Note(host string, p Progress) {
	if u.put(host, p) && u.Changed != nil {
		u.Changed()
	}
}

// put reports whether anything is different now.
func (u *Unjoined) put(host string, p Progress) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hosts == nil {
		u.hosts, u.settled = map[string]Progress{}, map[string]bool{}
	}
	before, known := u.hosts[host]
	settled := u.settled[host]
	delete(u.settled, host)
	switch p.State {
	case StateFailed, StateWaiting:
		if known && before.Reason == p.Reason {
			return false
		}
		u.hosts[host] = p
		return true
	case StateJoined, StateLeaving:
		u.settled[host] = true
		delete(u.hosts, host)
		return known || !settled
	case StateJoining, StateGone:
	}
	delete(u.hosts, host)
	return known || settled
}

// ListedHosts returns the hosts of the inputs that become nodes, by the names under which they are noted, with entries that stand for no host.
func ListedHosts(inputs *desired.Hosts) []string {
	var names []string
	for _, e := range inputs.Instances {
		names = append(names, e.Address)
	}
	for _, n := range inputs.All {
		if n.Backing == render.BackingMachine {
			names = append(names, n.MachineName)
		}
	}
	return names
}

// Condition is true when every listed host has joined. It says which hosts cannot join, why the first one cannot, and what to do; and
// otherwise how many have not joined yet.
func (u *Unjoined) Condition(listed []string) metav1.Condition {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := conditions.AsExpected(HostsJoined)
	// A host may be worked on for a while after it was removed from the inputs.
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(u.hosts)), func(name string) bool { return !slices.Contains(listed, name) && !isLostName(name) })
	left := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return u.settled[name] })))
	switch {
	case len(names) > 0:
		p := u.hosts[names[0]]
		text := names[0] + ": " + p.Text()
		if len(names) > 1 {
			text = fmt.Sprintf("%s cannot join: %s; %s", bundle.Count(len(names), "host"), strings.Join(names, ", "), text)
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.Reason, published.Shorten(text)
	case len(left) > 0:
		text := fmt.Sprintf("%d of %s on the way to become nodes: %s", len(left), bundle.Count(len(listed), "host"), bundle.JoinFirst(left, mostNames, ", ", bundle.AndMore))
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonJoining, published.Shorten(text)
	}
	return c
}

// ByReason returns the number of hosts, by reason. Those of failures are always among them.
func (u *Unjoined) ByReason() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[string]int{}
	for _, reason := range FailureReasons() {
		all[reason] = 0
	}
	for _, p := range u.hosts {
		all[p.Reason]++
	}
	return all
}
