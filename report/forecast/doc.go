// Package forecast predicts what the rollout of a change will do.
//
//	hosts rendered from the cluster's objects and from the changed ones --.
//	Nodes: what they have, their turns before -----------------------------+--Make--> Forecast --> text | markdown | JSON
//	layers that they have (Secrets) --------------------------------------'
//
// The rules are those of controller/rollout, by which the operator decides. It only reads, and shows no contents.
package forecast
