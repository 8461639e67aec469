// Package layers puts the layers of bundles where node agents fetch them, and removes what no node needs any longer.
//
//	[]Wanted, Observed --PlanChanges--> Changes --Publisher--> Secrets, Role, RoleBinding, then removals
//
// It tells no node of a bundle: that is a step of the rollout (controller/rollout/steps), after every part of it can be
// read. Layers are immutable and named by their content: a node never sees half of one. The package keeps nothing
// between calls: wanted and observed state decide. It never reads the contents of a Secret, except to find one that
// another client replaced.
package layers
