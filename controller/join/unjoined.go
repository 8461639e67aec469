package join

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/checks"
)

// HostsJoined is the type of the condition that no host of the inputs is kept from becoming a node.
const HostsJoined = "HostsJoined"

// Unjoined are the hosts that were kept from joining when they were last tried. It is for people alone: nothing is decided by it, and
// after a restart of the operator it is complete when every host has been tried again. The zero value has none.
type Unjoined struct {
	// Changed, if set, is called when the condition is another one.
	Changed func()

	mu    sync.Mutex
	hosts map[string]Progress
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
	before, known := u.hosts[host]
	switch p.State {
	case StateFailed, StateWaiting:
		if known && before.Reason == p.Reason {
			return false
		}
		if u.hosts == nil {
			u.hosts = map[string]Progress{}
		}
		u.hosts[host] = p
		return true
	case StateJoined, StateJoining, StateGone:
	}
	delete(u.hosts, host)
	return known
}

// Condition says which hosts cannot join, why the first one cannot, and what to do.
func (u *Unjoined) Condition() metav1.Condition {
	u.mu.Lock()
	defer u.mu.Unlock()
	names := slices.Sorted(maps.Keys(u.hosts))
	if len(names) == 0 {
		return metav1.Condition{Type: HostsJoined, Status: metav1.ConditionTrue, Reason: checks.AsExpected, Message: "as expected"}
	}
	p := u.hosts[names[0]]
	text := names[0] + ": " + p.Text()
	if rest := names[1:]; len(rest) > 0 {
		text = fmt.Sprintf("%s cannot join: %s; %s", bundle.Count(len(names), "host"), strings.Join(names, ", "), text)
	}
	return metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: p.Reason, Message: published.Shorten(text)}
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
