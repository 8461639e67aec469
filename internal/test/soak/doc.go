// Package soak lets a fleet of light nodes live through a storm, while an observer checks what must hold at every
// moment.
//
//	seed --> changes of inputs and settings, signing keys, boots, drift, nodes that come, go and are off for days,
//	         operators that are killed, bad days of the API server, clocks that are set
//	                |
//	         operator (a process of its own) <--> API server <--> node agents (light nodes in this process)
//	                                                |
//	         package observer: nodes away, cordons and claims, pods that are evicted, secrets; at rest: Secrets, goroutines and
//	        memory of the operator, bundles and hosts compared with those rendered here
//
// `make soak MINUTES=30` prints the seed, and in the end changes, faults and violations; SEED= repeats the choices of a
// run (not its timing), NODES= is the number of nodes to begin with. A run of the tests has a short one with few nodes.
//
// The counts of a run are those of what happened: an event that was not possible does not count. A run of at least six
// minutes fails where something that a storm does has never happened.
//
// What light nodes lack (package light) this has not either: joins, kubelets, PodDisruptionBudgets, and whatever is
// done over SSH. Whole machines and real SSH are in fleettest and jointest, and joins, removals and adoptions in any
// order in the life of nodes (controller/rollout).
//
// It has nothing but tests.
package soak
