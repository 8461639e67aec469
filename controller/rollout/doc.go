// Package rollout brings rendered bundles to the nodes: it renders changed inputs, publishes layers, executes the steps of
// the rollout, and reports its status.
//
//	inputs --render--> bundles --publish layers--> Secrets --take steps (package plan decides)--> Nodes --report--> WindowsNodesStatus, Events
package rollout
