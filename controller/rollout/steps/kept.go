package steps

import (
	"context"
	"time"

	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// wholePeriod is how long plans are made with what is kept of the nodes before a whole one is compared with it.
const wholePeriod = 10 * time.Minute

// keptPlan makes plans for which only the nodes that changed are decided again. A whole plan is made seldom: it is the check of the other, and what
// is done where they differ.
type keptPlan struct {
	plan.Kept
	// whole is when a whole plan was made last, by the clock that turns are decided by; isKnown is false before the first.
	whole   time.Duration
	isKnown bool
	// isPending is true while a node did not have what is wanted at the last call.
	isPending bool
	// isWhole is true after a call that made a whole plan.
	isWhole bool
}

// observeAndPlan observes the nodes and returns the next steps. With a whole plan, what is kept of the nodes is compared with their objects.
func (e *Executor) observeAndPlan(ctx context.Context, nodes map[string]windowsnode.Node, r Rendered) (view, plan.Plan, error) {
	v, err := e.observeFleet(ctx, nodes, r)
	if err != nil {
		return view{}, plan.Plan{}, err
	}
	next := e.planSteps(v.Fleet)
	if !e.kept.isWhole {
		return v, next, nil
	}
	names := e.forgetDiffering(ctx, nodes, r)
	if len(names) == 0 {
		return v, next, nil
	}
	e.Log.Error(nil, "what was kept of nodes differs from what their Nodes say, and is found out again; please report this", "nodes", names[:min(len(names), mostDiffering)])
	if e.CountDifference != nil {
		e.CountDifference()
	}
	if v, err = e.observeFleet(ctx, nodes, r); err != nil {
		return view{}, plan.Plan{}, err
	}
	return v, e.planSteps(v.Fleet), nil
}

// planSteps returns the next steps.
func (e *Executor) planSteps(f plan.Fleet) plan.Plan {
	next := e.kept.NextSteps(f)
	if e.kept.isWhole = e.kept.needsWhole(next.Fleet, e.Elapsed()); !e.kept.isWhole {
		return next
	}
	whole := plan.NextSteps(f)
	if next.Same(whole) {
		return next
	}
	e.Log.Error(nil, "the plan that was made with what is kept of the nodes differs from the whole one, which is used; please report this",
		"kept", next.Fleet.Message, "whole", whole.Fleet.Message, "nodes", differingNodes(next, whole))
	if e.CountDifference != nil {
		e.CountDifference()
	}
	e.kept.Forget()
	return whole
}

// needsWhole reports whether a whole plan is due: after some time, and at the end of each rollout.
func (k *keptPlan) needsWhole(s plan.Summary, now time.Duration) bool {
	isPending := s.Updating+s.Waiting+s.Degraded > 0
	due := !k.isKnown || now-k.whole >= wholePeriod || k.isPending && !isPending
	k.isPending = isPending
	if due {
		k.whole, k.isKnown = now, true
	}
	return due
}

// mostDiffering is how many nodes are named whose plans differ.
const mostDiffering = 5

// differingNodes returns the first nodes of which two plans say something else, with the words of both.
func differingNodes(kept, whole plan.Plan) []string {
	said := map[string]string{}
	for _, s := range kept.Nodes {
		said[s.Node] = string(s.Reason) + " " + s.Message
	}
	var list []string
	for _, s := range whole.Nodes {
		if text := string(s.Reason) + " " + s.Message; said[s.Node] != text && len(list) < mostDiffering {
			list = append(list, s.Node+": "+said[s.Node]+" / "+text)
		}
	}
	return list
}
