package rollout

import (
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/status"
)

// listedHost returns what a node needs, or why its host does not accept the operator's key, and the current work on
// its host; false for one that needs nothing and has nothing done.
func (r rendering) listedHost(row fleet.Row) (status.Host, bool) {
	h, needs := statusOfHost(row)
	if r.loginProblem != nil && !needs {
		if problem, ok := r.loginProblem(row.Node); ok {
			h, needs = problem, true
		}
	}
	if r.nodeWork == nil {
		return h, needs
	}
	work, ok := r.nodeWork(row.Node)
	switch {
	case !ok:
		return h, needs
	case needs:
		h.Message = published.ShortenTo(h.Message, maxBeforeWork) + "; " + work.Message
		return h, true
	}
	return work, true
}

// maxBeforeWork is how much of a node's need is shown while its host is worked on, in bytes.
const maxBeforeWork = 700
