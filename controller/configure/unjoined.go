package configure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/base/conditions"
	"wmco/controller/inputs/desired"
	"wmco/controller/status"
	"wmco/render"
)

// HostsJoined is the type of the condition that each host of the inputs is a node.
const HostsJoined = "HostsJoined"

// reasonJoining is its reason while hosts join, or have not been tried since the operator started.
const reasonJoining = "Joining"

// mostNames is how many hosts a message names.
const mostNames = 10

// Unjoined is the progress of hosts at their last attempt, for the status alone. After a restart of the operator it is
// complete when each host has been tried again. The zero value is empty.
type Unjoined struct {
	// Elapsed is a monotonic clock. Without it, a host that does not answer counts as failed immediately.
	Elapsed func() time.Duration

	mu sync.Mutex
	// calls are called when the condition changes.
	calls []func()
	// hosts could not join; settled have joined, or are no longer wanted; joining make progress.
	hosts   map[string]Progress
	settled map[string]bool
	joining map[string]Progress
	underWay
	// first is when a host first did not answer, late are hosts that have not answered for bootLimit.
	first map[string]time.Duration
	late  map[string]bool
	// removals are the removals of instances, by Node.
	removals map[string]removal
	// logins are why the operator could not log in with another key or account, by Node.
	logins map[string]atNode
}

// bootLimit is how long a host may not answer before it counts as failed: a new machine boots, and runs its user data.
const bootLimit = 10 * time.Minute

// atNode is the state of the host of a node.
type atNode struct {
	Progress
	address string
}

// RecordProgress records the progress of a host. While the reason stays the same, the first message is kept: connection
// errors have another port each time.
func (u *Unjoined) RecordProgress(host string, p Progress) {
	if u.storeProgress(host, p) {
		u.noteChange()
		return
	}
	u.changeSteps(func() bool { return u.moved })
}

// OnChange registers f, which is called when the condition changes. It must be called before hosts are recorded.
func (u *Unjoined) OnChange(f func()) { u.calls = append(u.calls, f) }

func (u *Unjoined) noteChange() {
	for _, f := range u.calls {
		f()
	}
}

// storeProgress reports whether the condition may have changed.
func (u *Unjoined) storeProgress(host string, p Progress) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hosts == nil {
		u.hosts, u.settled, u.joining, u.first, u.late = map[string]Progress{}, map[string]bool{},
			map[string]Progress{}, map[string]time.Duration{}, map[string]bool{}
	}
	before, known := u.hosts[host]
	settled := u.settled[host]
	u.moved = p.State == StateJoining && p.Message != u.joining[host].Message
	delete(u.settled, host)
	delete(u.joining, host)
	nowLate := u.noteUnanswered(host, p)
	switch p.State {
	case StateFailed, StateWaiting:
		if known && before.Reason == p.Reason {
			return nowLate
		}
		u.hosts[host] = p
		return true
	case StateJoined, StateLeaving:
		u.settled[host] = true
		delete(u.hosts, host)
		return known || !settled
	case StateJoining:
		u.joining[host] = p
	case StateGone:
	}
	delete(u.hosts, host)
	return known || settled
}

// noteUnanswered records for how long a host has not answered. It reports whether this call made the host late.
func (u *Unjoined) noteUnanswered(host string, p Progress) bool {
	if !awaitsBoot(p) {
		delete(u.first, host)
		delete(u.late, host)
		return false
	}
	if u.Elapsed == nil {
		u.late[host] = true
		return false
	}
	now := u.Elapsed()
	if _, ok := u.first[host]; !ok {
		u.first[host] = now
	}
	was := u.late[host]
	u.late[host] = now-u.first[host] >= bootLimit
	return u.late[host] && !was
}

// awaitsBoot reports whether the host may still be booting.
func awaitsBoot(p Progress) bool {
	return p.State == StateFailed && (p.Reason == ReasonUnreachable || p.Reason == ReasonSilent)
}

// Listed is a host of the inputs, or an entry of windows-instances that is invalid.
type Listed struct {
	// Name is the Machine, or the entry of windows-instances.
	Name, Address string
	// Node is the name of its Node, empty until the operator knows it.
	Node string
}

// ListHosts returns the hosts of the inputs.
func ListHosts(inputs *desired.Hosts) []Listed {
	var list []Listed
	nodes := map[string]string{}
	for _, n := range inputs.All {
		node := n.Name
		if n.Unconfirmed {
			node = ""
		}
		switch n.Backing {
		case render.BackingMachine:
			list = append(list, Listed{n.MachineName, n.Address, node})
		case render.BackingInstance:
			nodes[n.Address] = node
		case render.BackingNode:
		}
	}
	for _, e := range inputs.Instances {
		list = append(list, Listed{e.Address, e.Address, nodes[e.Address]})
	}
	return list
}

// describeFailures lists failures with the causes and fixes of the first ones, after a summary if there are several.
func describeFailures(names []string, summary string, progressOf func(name string) Progress) string {
	var texts []string
	for _, name := range names[:min(len(names), mostTexts)] {
		texts = append(texts, name+": "+progressOf(name).DisplayText())
	}
	text := strings.Join(texts, "; ")
	if len(names) > 1 {
		text = fmt.Sprintf("%s: %s; %s", summary, bundle.JoinFirst(names, mostNames, ", ", bundle.AndMore), text)
	}
	return published.Shorten(text)
}

// mostTexts is how many hosts a message explains.
const mostTexts = 3

// HostsJoinedCondition is True when each listed host has joined. It lists the hosts that cannot join, with the causes and
// fixes of the first ones. Without any it lists those that have not joined yet.
func (u *Unjoined) HostsJoinedCondition(listed []Listed) metav1.Condition {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := conditions.AsExpected(HostsJoined)
	names, left := u.failingHosts(listed), u.unjoinedHosts(listed)
	switch {
	case len(names) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, u.hosts[names[0]].Reason
		c.Message = describeFailures(names, bundle.Count(len(names), "host")+" cannot join",
			func(name string) Progress { return u.hosts[name] })
	case len(left) > 0:
		var names []string
		for _, h := range left {
			names = append(names, h.Name)
		}
		text := fmt.Sprintf("%d of %s on the way to become nodes: %s", len(left), bundle.Count(len(listed), "host"),
			bundle.JoinFirst(names, mostNames, ", ", bundle.AndMore))
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonJoining, published.Shorten(text)
	}
	return c
}

// failingHosts returns the names of hosts that cannot join, except those that were removed from the inputs.
func (u *Unjoined) failingHosts(listed []Listed) []string {
	is := map[string]bool{}
	for _, h := range listed {
		is[h.Name] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(u.hosts)), func(name string) bool {
		return !is[name] && !isLostName(name)
	})
}

// unjoinedHosts returns the hosts that have not joined, by name. A host with a Node counts as joined after a restart of
// the operator.
func (u *Unjoined) unjoinedHosts(listed []Listed) []Listed {
	left := slices.DeleteFunc(slices.Clone(listed), func(h Listed) bool {
		return u.settled[h.Name] || h.Node != "" && !u.isOnItsWay(h.Name)
	})
	slices.SortFunc(left, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return left
}

// UnjoinedHostsFunc returns a function that lists the hosts of the inputs that have not joined, and those that are being
// removed.
func (u *Unjoined) UnjoinedHostsFunc(inputs *desired.Hosts) func() []status.Host {
	listed := ListHosts(inputs)
	return func() []status.Host { return u.StatusHosts(listed) }
}

// StatusHosts returns the hosts that have not joined, and those that are being removed.
func (u *Unjoined) StatusHosts(listed []Listed) []status.Host {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = false
	byName := map[string]Listed{}
	for _, h := range listed {
		byName[h.Name] = h
	}
	var list []status.Host
	names := u.failingHosts(listed)
	for _, name := range names {
		p := u.hosts[name]
		h := status.Host{Name: strings.TrimPrefix(name, lostPrefix), Address: byName[name].Address,
			Node: cmp.Or(p.Node, byName[name].Node), Reason: p.Reason, Message: published.Shorten(p.Message),
			Fix: published.Shorten(p.Fix), Log: p.Log}
		if isLostName(name) {
			h.Node = h.Name
		}
		list = append(list, u.withStep(statusOfProgress(h, p, u.late[name]), name))
	}
	for _, h := range u.unjoinedHosts(listed) {
		if slices.Contains(names, h.Name) {
			continue
		}
		list = append(list, status.Host{Name: h.Name, Address: h.Address, Node: h.Node, State: nodestate.Joining,
			Reason: reasonJoining, Message: u.joiningText(h.Name)})
	}
	for _, node := range slices.Sorted(maps.Keys(u.removals)) {
		list = append(list, u.withWork(u.statusOfRemoval(node)))
	}
	return list
}

// statusOfProgress returns the status row of a Progress.
func statusOfProgress(h status.Host, p Progress, late bool) status.Host {
	switch {
	case awaitsBoot(p) && !late:
		h.State = nodestate.Joining
	case p.State == StateFailed:
		h.State = nodestate.Degraded
	default:
		h.State = nodestate.Waiting
	}
	return h
}

// ByReason counts hosts by reason. Each of FailureReasons is included, also with zero.
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
