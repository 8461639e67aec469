// Package windowsnode is a Windows Node, decoded once: everything that the operator and the command line read of it.
//
//	Node --Decode--> desired bundle, report of the node agent, state of the rollout, each with why it cannot be read
//	         `-----> conditions of kubelet and node agent; ready, lost, paused, joined, joining, removed, silent
//
// It makes no requests, and links no client: the planner of rollouts takes these values. The package nodelist below it
// lists Nodes. It trusts nothing: a node may write the annotations of its own Node, and whoever may write Nodes those
// of all. Whether the operator has signed what is published, and so has told the node of it, is checked where that
// decides (DesiredReader, controller/signing).
package windowsnode
