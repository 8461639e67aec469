package configure

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/base/conditions"
	"wmco/controller/status"
)

// InstancesRemoved is the type of the condition that each instance without an entry is cleaned up and has no Node.
const InstancesRemoved = "InstancesRemoved"

// reasonRemoving is its reason while removals make progress.
const reasonRemoving = "Removing"

// removalLimit is how long a removal may take before it counts as stuck. Pods terminate within minutes: their grace
// period.
const removalLimit = 30 * time.Minute

// removal is the progress of the removal of an instance, and its start by Unjoined.Elapsed.
type removal struct {
	Progress
	address string
	since   time.Duration
}

// NoteRemoval records the progress of the removal of an instance, by its Node. A Progress that is finished or has no
// message ends the removal.
func (u *Unjoined) NoteRemoval(node, address string, p Progress) {
	u.mu.Lock()
	before, known := u.removals[node]
	if p.Message == "" || p.Finished {
		delete(u.removals, node)
	} else {
		if u.removals == nil {
			u.removals = map[string]removal{}
		}
		now := removal{p, address, before.since}
		if !known {
			now.since = u.elapsed()
		}
		u.removals[node] = now
	}
	_, is := u.removals[node]
	u.mu.Unlock()
	if known != is || is && before.Reason != p.Reason {
		u.noteChange()
	}
}

// elapsed is the time by the monotonic clock, zero without one.
func (u *Unjoined) elapsed() time.Duration {
	if u.Elapsed == nil {
		return 0
	}
	return u.Elapsed()
}

// stateOfRemoval returns Degraded if the host cannot be cleaned up, and Waiting if a person or another program has to do
// something first.
func (u *Unjoined) stateOfRemoval(r removal) nodestate.State {
	switch {
	case r.State == StateFailed:
		return nodestate.Degraded
	case r.Reason == ReasonNotConfirmed, r.Reason == ReasonDrainBlocked, u.elapsed()-r.since >= removalLimit:
		return nodestate.Waiting
	}
	return nodestate.Removing
}

// statusOfRemoval returns the removal of a Node for the status.
func (u *Unjoined) statusOfRemoval(node string) status.Host {
	r := u.removals[node]
	return status.Host{
		Name: node, Address: r.address, Node: node, State: u.stateOfRemoval(r), Reason: r.Reason,
		Message: published.Shorten(r.Message), Fix: published.Shorten(r.Fix),
	}
}

// InstancesRemovedCondition is False while removals are stuck: the host cannot be cleaned up, pods do not terminate, or an
// empty list was not confirmed. It lists them, with the causes and fixes of the first ones. It is Unknown while all
// removals make progress.
func (u *Unjoined) InstancesRemovedCondition() metav1.Condition {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := conditions.AsExpected(InstancesRemoved)
	names := slices.Sorted(maps.Keys(u.removals))
	stuck := slices.DeleteFunc(slices.Clone(names), func(node string) bool {
		return u.stateOfRemoval(u.removals[node]) == nodestate.Removing
	})
	slices.SortStableFunc(stuck, func(a, b string) int {
		return nodestate.Compare(u.stateOfRemoval(u.removals[b]), u.stateOfRemoval(u.removals[a]))
	})
	switch {
	case len(stuck) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, u.removals[stuck[0]].Reason
		c.Message = describeFailures(stuck, bundle.Count(len(stuck), "instance")+" cannot be removed",
			func(node string) Progress { return u.removals[node].Progress })
	case len(names) > 0:
		text := fmt.Sprintf("%s being removed: %s", bundle.Count(len(names), "instance"),
			bundle.JoinFirst(names, mostNames, ", ", bundle.AndMore))
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonRemoving, published.Shorten(text)
	}
	return c
}
