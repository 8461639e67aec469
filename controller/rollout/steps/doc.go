// Package steps makes the steps of a rollout on the cluster.
//
//	Nodes, Machines, pods, what is rendered --> a snapshot --plan--> steps --> one patch of one Node each
//	                                                                   `--> drains, in the background
//
// It decides nothing: whose turn it is says controller/rollout/plan, from a snapshot. A step is written with the resourceVersion of that
// snapshot, so it is refused if anything about the Node has changed, and decided again. What takes a node away is decided from a list that
// was read without a cache. The package keeps no state: what it remembers are its own writes until the cache has them, what changes
// cost, what it found out about the versions of Nodes that it has seen, which is found out again for each rendering and compared now and then,
// and for how long it has seen what the Nodes say (docs/decisions/0025-time-as-observed.md).
package steps
