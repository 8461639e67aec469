package windowsnode

// Windows is the value of the label kubernetes.io/os of a Windows Node.
const Windows = "windows"

// What the cluster autoscaler reads and writes on Nodes (kubernetes/autoscaler, cluster-autoscaler/FAQ.md and utils/taints). The operator's own
// keys are those of bundle/published.
const (
	// ScaleDownAnnotation of a Node keeps the autoscaler from removing it.
	ScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ToBeDeletedTaint is on a Node that the autoscaler removes.
	ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"
)
