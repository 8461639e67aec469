// Package rollout brings rendered bundles to the nodes: it renders when inputs have changed, publishes layers, has the
// steps of the rollout made, and reports how it goes.
//
//	inputs --rendering--> bundles --layers--> Secrets --steps (plan decides)--> Nodes --conditions--> WindowsNodesStatus, Events
package rollout
