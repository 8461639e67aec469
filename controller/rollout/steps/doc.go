// Package steps executes the steps of a rollout on the cluster.
//
//	Nodes, Machines, pods, rendered bundles --> a snapshot --plan--> steps --> one patch of one Node each
//	                                                                   `--> drains, in the background
//
// It decides nothing: controller/rollout/plan decides about the next node, from a snapshot. A step is written with the
// resourceVersion of that snapshot, so it is refused if the Node has changed, and decided again. Steps that make a node
// unavailable are decided from a list that was read without a cache.
//
//	memory.go, comparison.go   the knowledge kept between two passes: of each node, and of changes of layers, by their digests
//	pods.go, machines.go       objects beside a node
//	executor.go                what a pass gets, and the Executor
//	snapshot.go                the fleet at one moment, built whole in each pass
//	step.go                    one step of one node
//	pass.go, result.go         a pass, and its report
//
// Between two passes it remembers of a node its own writes until the cache has them, what it signed, and for how long it
// has seen the node's state (docs/decisions/0025-time-as-observed.md). A process that starts finds all of it out again.
package steps
