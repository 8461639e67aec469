package rollout

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/payload"
)

// kubeletsUpgradeable lists the Windows nodes that block the next minor update of the cluster, before it is tried. As
// OpenShift does, it reads the versions that Nodes report. It is a hint (status.IsHint).
func kubeletsUpgradeable(cluster string, nodes map[string]windowsnode.Node) metav1.Condition {
	c := metav1.Condition{Type: status.KubeletsUpgradeable, Status: metav1.ConditionTrue, Reason: status.ReasonKubelets,
		Message: "no Windows node blocks the next minor update of the cluster"}
	refuses := map[string]bool{} // by version: a fleet has few of them
	var old []string
	for name, n := range nodes {
		kubelet := n.Status.NodeInfo.KubeletVersion
		if _, known := refuses[kubelet]; !known {
			refuses[kubelet] = payload.RefusesUpdate(cluster, kubelet)
		}
		if refuses[kubelet] {
			old = append(old, name+" ("+kubelet+")")
		}
	}
	if len(old) == 0 {
		return c
	}
	slices.Sort(old)
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonOldKubelets
	c.Message = published.Shorten("OpenShift refuses the next minor update of this cluster (" + cluster +
		"), because the kubelets of these nodes are too old for it: " + bundle.JoinFirst(old, 3, ", ", moreNodes) +
		"; fix: wait until the rollout is finished (wmco status); if the MachineConfigPool worker is paused, resume it")
	return c
}
