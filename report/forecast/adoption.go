package forecast

import (
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// maxPlanText is how many bytes of the plan of an adoption are shown. The operator writes it on the Node, where the
// node can write too.
const maxPlanText = 500

// adoptionStatus returns what the adoption of a node of another operator changes: no rollout of a change reaches such a
// node before, and its adoption brings it the whole bundle. Waits is false for other nodes, and for one whose adoption
// is being updated by the rollout.
func adoptionStatus(n windowsnode.Node, settings render.Settings) (s plan.Status, waits bool) {
	if !n.WaitsForAdoption() || n.Annotations[published.DesiredAnnotation] != "" {
		return plan.Status{}, false
	}
	s = plan.Status{Node: n.Name, Phase: plan.PhaseWaiting, Reason: fleet.ReasonWaitingForAdoption}
	switch {
	case n.Report.Adopting:
	case fleet.IsAdoptionWanted(settings, n.Annotations):
		s.Message = "configured by the existing operator; adoption requested, not started yet (wmco status NODE shows the cause). " +
			"The adoption applies the complete bundle"
		return s, true
	default:
		s.Message = "configured by the existing operator; its adoption applies the complete bundle. To see the changes here and " +
			"in wmco status NODE, run wmco pause NODE, then wmco adopt NODE"
		return s, true
	}
	s.Reason, s.Impact = fleet.ReasonAdopting, n.Report.Impact
	s.Message = "waiting for adoption, which applies the complete bundle: " + bundle.BoundedText(n.Report.Message, maxPlanText)
	return s, true
}
