// Package soak lets a fleet of light nodes live through a storm, while an observer checks what must hold at every moment.
//
//	seed --> changes of inputs and settings, keys, boots, drift, nodes that come, go and are off for days, instances that are removed,
//	         nodes of the existing operator that are adopted, operators that are killed, bad days of the API server, clocks that are set
//	                |
//	         operator (a process of its own) <--> API server <--> node agents (light nodes in this process)
//	                                                |
//	         observer: nodes away, cordons and claims, pods that are evicted, secrets; at rest: Secrets, goroutines and
//	         memory of the operator, bundles and hosts compared with what is rendered here
//
// `make soak MINUTES=30` prints the seed, and in the end changes, faults and violations; SEED= repeats the choices of a run (not its timing),
// NODES= is the number of nodes to begin with. A run of the tests has a short one with few nodes.
//
// The counts of a run are those of what happened: an event that was not possible does not count. A run of at least six minutes fails where something that a
// storm does has never happened.
//
// One node in some is an instance. When its entry is removed, its host is in a folder behind an SSH server, and the operator cleans it up. Nodes of the
// existing operator are instances with such a host from the beginning, furnished as one of its generations leaves it (package existing). They are adopted over
// SSH, some with a drain, while an operator is killed; each service may be restarted once, where the plan says so. Then the storm happens to them as to
// all others. What light nodes lack (package light) this has not either: joins, kubelets, PodDisruptionBudgets.
//
// It has nothing but tests.
package soak
