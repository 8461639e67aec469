package windowsnode

// Windows is the value of the label kubernetes.io/os of a Windows Node.
const Windows = "windows"

// What the cluster autoscaler reads and writes on Nodes (kubernetes/autoscaler, cluster-autoscaler/FAQ.md and
// utils/taints). The operator's own keys are those of bundle/published.
const (
	// ScaleDownAnnotation of a Node keeps the autoscaler from removing it.
	ScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ToBeDeletedTaint is on a Node that the autoscaler removes.
	ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"
)

// RemovingTaint is on the Node of an instance that is removed, beside the cordon: a kubelet may take its own cordon
// back, and no taint of its Node (kubernetes.io/docs/reference/access-authn-authz/admission-controllers,
// NodeRestriction).
const RemovingTaint = "windowsmachineconfig.openshift.io/removing"
