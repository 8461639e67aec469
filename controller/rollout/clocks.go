package rollout

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// clockSkews returns the nodes whose clocks differ, and then the hosts that have no Node. The report of a node agent is
// better than the answer of its host.
func (t *statusReporter) clockSkews(nodes map[string]windowsnode.Node, r rendering) []heartbeat.Skew {
	list := t.heartbeats.ClockSkews()
	if t.hostClocks == nil {
		return list
	}
	of := map[string]bool{}
	for name := range nodes {
		of[r.addresses[name]] = true
	}
	for _, s := range t.hostClocks() {
		if !of[s.Node] {
			list = append(list, s)
		}
	}
	return list
}

// clocksAgree lists clocks that differ from the operator's. It is a hint (status.IsHint).
func clocksAgree(skews []heartbeat.Skew) metav1.Condition {
	c := metav1.Condition{Type: status.ClocksAgree, Status: metav1.ConditionTrue, Reason: status.ReasonClocksAgree,
		Message: "the clocks of all compared nodes differ from the operator's by at most " +
			strings.TrimSuffix(heartbeat.Tolerance.String(), "0s")}
	if len(skews) == 0 {
		return c
	}
	var texts []string
	for _, s := range skews {
		texts = append(texts, s.String())
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonClockSkew
	c.Message = "the clocks of nodes differ from the operator's: " + bundle.JoinFirst(texts, 3, ", ", moreNodes) +
		"; fix: " + heartbeat.Fix + "; if all nodes are listed, correct the clock of the operator's own node"
	return c
}
