package published

// Input is an input that all nodes share and that may be deleted by mistake: nodes keep their published bundle
// until the deletion is confirmed, or the input is back.
type Input string

const (
	// InputInstances is the ConfigMap windows-instances. No bundle is rendered from it. Nodes that joined through an entry
	// show that the ConfigMap once existed.
	InputInstances Input = "instances"
	// InputMirrors are the mirror sets of all kinds together.
	InputMirrors Input = "mirrors"
	// InputSettings is the ConfigMap windows-machine-config.
	InputSettings Input = "settings"
	// InputUnreachableImages is not an object but the finding NodeImageUnreachable: an image that every node needs before
	// any Pod (render.Cluster.NodeImages) cannot be pulled. Users confirm it like an input, in ConfirmFindingAnnotation.
	InputUnreachableImages Input = "NodeImageUnreachable"
)
