package published

// Input is an input that all nodes share and that may be deleted by mistake: nodes keep their published bundle
// until the deletion is confirmed, or the input is back.
type Input string

const (
	// InputInstances is the ConfigMap windows-instances. No bundle is made from it, but its nodes stand for its
	// entries.
	InputInstances Input = "instances"
	// InputMirrors are the mirror sets of all kinds together.
	InputMirrors Input = "mirrors"
	// InputSettings is the ConfigMap windows-machine-config.
	InputSettings Input = "settings"
	// InputUnreachableImages is no input, but a finding about the inputs that were confirmed: an image that every node
	// needs before any pod (render.Cluster.NodeImages) cannot be pulled from anywhere. Its value is the reason of the
	// finding, in ConfirmFindingAnnotation too.
	InputUnreachableImages Input = "NodeImageUnreachable"
)
