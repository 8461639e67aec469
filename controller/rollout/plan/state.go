package plan

import (
	"wmco/bundle"
	"wmco/controller/windowsnode"
)

// The state of a rollout on a Node: windowsnode encodes and decodes it.
type (
	// State is what the operator knows about a node.
	State = windowsnode.RolloutState
	// Turn is the change of one node to one bundle.
	Turn = windowsnode.Turn
	// Claim is a place among the unavailable nodes.
	Claim = windowsnode.Claim
	// WindowsBoot is a boot of a host for what Windows itself waited for.
	WindowsBoot = windowsnode.WindowsBoot
	// Elapsed is what of Seen is in the annotation.
	Elapsed = windowsnode.Elapsed
)

// retryDigest stands for the value of published.RetryAnnotation or RebootAnnotation, whose length has no limit.
func retryDigest(text string) bundle.Digest {
	if text == "" {
		return ""
	}
	return bundle.Of([]byte(text))
}
