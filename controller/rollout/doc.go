// Package rollout brings rendered bundles to the nodes: it renders changed inputs, publishes layers, executes the steps of
// the rollout, and reports its status.
//
//	inputs --rendering--> bundles --layers--> Secrets --steps (plan decides)--> Nodes --conditions--> WindowsNodesStatus, Events
package rollout
