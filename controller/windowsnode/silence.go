package windowsnode

import (
	"time"

	"wmco/bundle/published"
)

// Silence returns for how long the agent of a node has given no sign of life; what that is compared with is
// published.SilentAfter.
type Silence func(Node) time.Duration

// SilenceByKubelet is Silence for who has observed nothing: the time from the last sign of life of the agent to that of
// the kubelet of the same node. The kubelet writes one at least every five minutes while it runs
// (kubernetes.io/docs/reference/node/node-status, Heartbeats). It is zero where one of them has not been written.
func SilenceByKubelet(n Node) time.Duration {
	agent, kubelet := n.AgentCondition.LastHeartbeatTime.Time, n.KubeletCondition.LastHeartbeatTime.Time
	if agent.IsZero() || kubelet.IsZero() {
		return 0
	}
	return max(kubelet.Sub(agent), 0)
}

// IsSilent reports whether the agent should report and does not: the kubelet lives. One that was rolled back while its
// node was adopted has had its time: the operator reports in its place.
func (s Silence) IsSilent(n Node) bool {
	silent := s(n) > published.SilentAfter // it observes every Node
	return silent && n.IsReady() && !n.AgentCondition.LastHeartbeatTime.IsZero() && !n.Report.Adopting
}
