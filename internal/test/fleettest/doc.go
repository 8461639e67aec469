// Package fleettest tests whole nodes: simulated Windows machines on a real control plane, with the operator and the
// permissions that it ships.
//
//	change of an object --> operator --> Secrets, Role, Nodes --> five node agents --> reports
//	         audit log of the API server: who wrote what
//	         operations of the machines: what was written and restarted
//	        logs of the SSH servers: there are no logins
//
// TestFleet joins five machines over SSH and counts what each change costs. TestStorm has machines in memory, as many
// as WMCO_FLEET has, and disturbs their rollouts; an observer checks every event of Nodes and pods:
//
//	changes in the middle of others, a setting that is wrong ---.
//	hosts that stay away -------------------------------------- rollout --> Nodes, pods --every event--> observer: invariants
//	administrators, PodDisruptionBudgets ----------------------'
//
// What disturbs operators and the API server is in package world.
//
// It has nothing but tests.
package fleettest
