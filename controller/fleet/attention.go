package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/nodestate"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
)

// IsDone reports whether every node has its wanted bundle and is Ready, no host waits, and the operator works and
// is Ready. Of some nodes or hosts alone, the operator may be busy with others.
func (f Fleet) IsDone() bool {
	return f.Operator.Problem == "" && f.isReady() && len(f.Hosts) == 0 &&
		!slices.ContainsFunc(f.Rollout.Nodes, isLeft) &&
		!slices.ContainsFunc(f.Nodes, func(r Row) bool { return r.State != nodestate.Updated || !r.IsReady() })
}

// isReady reports whether the condition Ready is true. Without that condition, and for a selection of nodes, the
// conditions that it sums up are used.
func (f Fleet) isReady() bool {
	if c := meta.FindStatusCondition(f.Conditions, status.Ready); c != nil && !f.partial {
		return c.Status == metav1.ConditionTrue
	}
	return !slices.ContainsFunc(f.Problems(), func(c metav1.Condition) bool { return !status.IsHint(c.Type) })
}

// Problems are the conditions of the operator that are not as they should be, but that of the rollout, which has its
// own line. Hints, by which nothing is decided, come last.
func (f Fleet) Problems() []metav1.Condition {
	list := slices.DeleteFunc(slices.Clone(f.Conditions), func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue || c.Type == status.RolledOut || status.IsSummary(c.Type)
	})
	slices.SortStableFunc(list, func(a, b metav1.Condition) int {
		switch isHint := status.IsHint(a.Type); {
		case isHint == status.IsHint(b.Type):
			return 0
		case isHint:
			return 1
		}
		return -1
	})
	return list
}

// Others are the hosts that their node's row does not explain: those without a node, and those about which the operator
// reports something else, such as a removal that is stuck or the current work on its host.
func (f Fleet) Others() []status.Host {
	return slices.DeleteFunc(slices.Clone(f.Hosts), func(h status.Host) bool {
		return slices.ContainsFunc(f.Nodes, func(r Row) bool {
			return r.Node == h.Node && h.State != nodestate.Updating &&
				(r.Reason == h.Reason || r.State == h.State && h.State == nodestate.Joining)
		})
	})
}

// Turns returns the turns of a node in rollouts, the latest first.
func (f Fleet) Turns(node string) []plan.Turn { return f.turns[node] }

// isLeft reports whether a node does not have its wanted bundle, or is a canary that is still observed.
func isLeft(s plan.Status) bool { return s.Phase != plan.PhaseUpdated }

// SamePlace are nodes that are in the same place of a rollout.
type SamePlace struct {
	plan.Status
	Names []string
}

// Left returns the nodes that do not have their wanted bundle, those with the same message together. That nothing is
// published for a node is in its row.
func (r Rollout) Left() []SamePlace {
	var list []SamePlace
	at := map[string]int{}
	for _, n := range r.Nodes {
		if !isLeft(n) || n.Reason == plan.ReasonUnknown {
			continue
		}
		key := string(n.Phase) + " " + n.Message
		if i, ok := at[key]; ok {
			list[i].Names = append(list[i].Names, n.Node)
			continue
		}
		at[key] = len(list)
		list = append(list, SamePlace{Status: n, Names: []string{n.Node}})
	}
	return list
}
