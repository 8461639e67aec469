// Package observer watches Nodes and pods in a storm, and checks the rules after each event. It reads
// the cluster alone, not the operator.
//
//	Nodes  --watch--> unavailable because of a rollout, restarting, what administrators did
//	pods   --watch--> evicted only while their node is held
//	both, and Events --> secrets that are shown
//
// The storms of the world have it.
package observer
