// Package windowsnode is a decoded Windows Node, with all fields that the operator and the command line read.
//
//	Node --Decode--> desired bundle, report of the node agent, state of the rollout, each with why it cannot be read
//	         `-----> conditions of kubelet and node agent; ready, lost, paused, joined, joining, removed, silent
//
// It makes no requests, and links no client: the planner of rollouts takes these values. Package nodelist lists Nodes. It
// trusts nothing: a node may write the annotations of its own Node, and other users those of all. Callers whose decision
// needs it verify the operator's signature (DesiredReader, controller/keys/signing).
package windowsnode
