package join

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
)

// Labels and annotations of Nodes. All but JoiningAnnotation are those of the existing operator.
const (
	domain = "windowsmachineconfig.openshift.io/"
	// VersionAnnotation is the version of the operator that configured the node; it is written last.
	VersionAnnotation = published.VersionAnnotation
	// UsernameAnnotation is the account of the host, encrypted with the private key.
	UsernameAnnotation = domain + "username"
	// InstanceAnnotation is the entry of windows-instances that a node is for. The existing operator has none.
	InstanceAnnotation = domain + "instance"
	// InstanceLabel marks the Node of an entry of windows-instances.
	InstanceLabel = domain + "byoh"
	// RoleLabel gives the node its role in the cluster.
	RoleLabel = "node-role.kubernetes.io/worker"
	// JoiningAnnotation says that the operator cordoned the node until it has joined. Nobody else's cordon is lifted.
	JoiningAnnotation = published.JoiningAnnotation
)

// marks are what the operator writes on a Node. An empty value of an annotation removes it.
type marks struct {
	labels, annotations map[string]string
	// cordon is nil where that stays as it is.
	cordon *bool
}

// patch returns the merge patch that gives a Node its marks, nil if it has them. The resourceVersion makes the API server refuse it
// where the Node has changed since it was read: a cordon must not undo an administrator's.
func (m marks) patch(n *corev1.Node) ([]byte, error) {
	metadata := map[string]any{}
	if labels := differing(m.labels, n.Labels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := differing(m.annotations, n.Annotations); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	body := map[string]any{}
	if m.cordon != nil && *m.cordon != n.Spec.Unschedulable {
		body["spec"] = map[string]any{"unschedulable": *m.cordon}
	}
	if len(metadata) == 0 && len(body) == 0 {
		return nil, nil
	}
	metadata["resourceVersion"] = n.ResourceVersion
	body["metadata"] = metadata
	return json.Marshal(body)
}

func differing(want, have map[string]string) map[string]any {
	list := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch value, ok := have[key]; {
		case want[key] == "" && key != RoleLabel && ok:
			list[key] = nil
		case (want[key] != "" || key == RoleLabel) && (!ok || value != want[key]):
			list[key] = want[key]
		}
	}
	return list
}
