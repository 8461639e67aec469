// Package layers publishes the layers of bundles as Secrets and removes unused ones.
//
//	[]Wanted, Observed --PlanChanges--> Changes --Publisher--> Secrets, Role, RoleBinding, then removals
//
// It announces no bundle to a node: that is a step of the rollout (controller/rollout/steps), when all layers can be
// read. Layers are immutable and named by their content: a node never sees half of one. The package keeps nothing
// between calls, and never reads the contents of a Secret, except to find one that another client replaced.
package layers
