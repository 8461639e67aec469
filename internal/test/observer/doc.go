// Package observer watches the Nodes and pods of a cluster in a storm, every event of them, and checks what must hold
// after each. It asks no operator: what it knows is what anybody can see in the cluster.
//
//	Nodes  --watch--> unavailable because of a rollout, restarting, what administrators did
//	pods   --watch--> evicted only while their node is held
//	both, and Events --> secrets that are shown
//
// The storms of fleettest (whole machines) and the world (light nodes, for days) have it.
package observer
