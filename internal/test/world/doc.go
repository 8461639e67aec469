// Package world is a whole cluster with its Windows nodes in one process and in virtual time: days of a fleet in seconds.
//
//	seed --> steps, each an act: changes of inputs and settings, signing keys, boots, drift, nodes that come, go and are off for days, hosts that
//	         do not work, annotations that are restored or forged, operators that are killed, replaced or two, or of
//	         another release, registries that fail, entries of windows-instances that are removed, hosts that the existing operator takes back, bad days of the API server, etcd that is
//	         restored, clocks that are set
//	                |
//	         operator (controller.Run) --each write is judged (writes_test.go)--> package api, an API server in memory <--> node agents (light nodes)
//	                                                                                       |
//	         package observer: nodes away, cordons and claims, pods that are evicted, secrets; at rest: Secrets, bundles and
//	         hosts compared with the bundles rendered here
//
// All of it runs in a bubble of testing/synctest, where time passes when everything waits. A seed repeats the acts, their
// order and their times. The order of goroutines that run in the same moment is Go's, so a run may differ in it.
// WMCO_WORLD_SEED and WMCO_WORLD_SEEDS say which seeds are played, WMCO_WORLD_NODES how many nodes there are at first,
// WMCO_WORLD_HOSTS how many whole hosts join over SSH and WMCO_WORLD_ROUNDS how many storms. WMCO_WORLD_ACTS is a regular
// expression for the acts that are dealt. A failure prints its story: each act with its time. WMCO_WORLD_SHRINK has acts and
// nodes left out as long as the same rule is broken, and prints the story of what is left. WMCO_WORLD_TELL prints the acts
// as they happen, and the end of the operator's log after a failure.
//
// The operator reaches no light node over SSH, and one that was removed stays away. Whole hosts have what light nodes lack
// (package light): SSH, a kubelet whose certificates expire, and hybrid-overlay-node (package simnode). Packages manager and
// cluster have what is around them. Both releases of the operator are the program of this module, with other executables.
// Real SSH and a real API server are in jointest, and joins, removals and adoptions in any order in the life
// of nodes (controller/rollout).
//
// It has nothing but tests.
package world
