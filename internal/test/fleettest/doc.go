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
//	operators that are killed, or two at once ---.
//	hosts that stay away, come and go ----------- rollout --> Nodes, pods --every event--> observer: invariants
//	administrators, PodDisruptionBudgets --------'
//
// It has nothing but tests.
package fleettest
