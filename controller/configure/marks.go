package configure

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// Labels and annotations of Nodes. All but JoiningAnnotation are those of the existing operator.
const (
	domain = "windowsmachineconfig.openshift.io/"
	// VersionAnnotation is the version of the operator that configured the node; it is written last.
	VersionAnnotation = published.VersionAnnotation
	// DesiredVersionAnnotation is the version of the operator that works on the node.
	DesiredVersionAnnotation = published.DesiredVersionAnnotation
	// UsernameAnnotation is the account of the host, encrypted with the private key.
	UsernameAnnotation = domain + "username"
	// InstanceAnnotation is the entry of windows-instances that a node is for.
	InstanceAnnotation = published.InstanceAnnotation
	// InstanceLabel marks the Node of an entry of windows-instances.
	InstanceLabel = published.InstanceLabel
	// RoleLabel gives the node its role in the cluster.
	RoleLabel = "node-role.kubernetes.io/worker"
	// JoiningAnnotation marks a node that the operator cordoned until it has joined. Other cordons are not lifted.
	JoiningAnnotation = published.JoiningAnnotation
)

// Marks are what the operator writes on a Node. An empty value of one of its own annotations removes it.
type Marks struct {
	Labels, Annotations map[string]string
	// Cordon cordons or uncordons the Node; nil changes nothing. Uncordoning also removes the taint RemovingTaint.
	Cordon *bool
	// Removing adds or removes RemovingTaint; nil changes nothing.
	Removing *bool
}

// mergePatch returns the merge patch that gives a Node its marks, nil if it has them. The resourceVersion makes the API
// server refuse it where the Node has changed since it was read: a cordon must not undo an administrator's.
func (m Marks) mergePatch(n *corev1.Node) ([]byte, error) {
	metadata := map[string]any{}
	if labels := differingValues(m.Labels, n.Labels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := differingValues(m.Annotations, n.Annotations); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	spec := map[string]any{}
	if m.Cordon != nil && *m.Cordon != n.Spec.Unschedulable {
		spec["unschedulable"] = *m.Cordon
	}
	removing, tainted := m.Removing != nil && *m.Removing, windowsnode.HasTaint(n, windowsnode.RemovingTaint)
	switch isOver := m.Removing != nil || m.Cordon != nil && !*m.Cordon; {
	case removing && !tainted:
		spec["taints"] = append(slices.Clone(n.Spec.Taints),
			corev1.Taint{Key: windowsnode.RemovingTaint, Effect: corev1.TaintEffectNoSchedule})
	case tainted && isOver && !removing:
		spec["taints"] = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
			return t.Key == windowsnode.RemovingTaint
		})
	}
	if len(metadata) == 0 && len(spec) == 0 {
		return nil, nil
	}
	metadata["resourceVersion"] = n.ResourceVersion
	body := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	return json.Marshal(body)
}

// differingValues returns the wanted values that a Node lacks. An empty value removes only keys of the operator: others,
// such as the labels of roles, are empty.
func differingValues(want, have map[string]string) map[string]any {
	list := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		removed := want[key] == "" && strings.HasPrefix(key, domain)
		switch value, ok := have[key]; {
		case removed && ok:
			list[key] = nil
		case !removed && (!ok || value != want[key]):
			list[key] = want[key]
		}
	}
	return list
}
