// Package publish puts the bundles of joined nodes where their agents fetch them, and removes what no node needs any longer.
//
//	[]Wanted, Observed --Make--> Changes --Publisher--> Secrets, Role, RoleBinding, then the Nodes, then removals
//
// The order makes sure that a node that learns of a bundle may read every part of it. Layers are immutable and named by their
// content: a node never sees half of one. The package keeps nothing between calls: what is wanted and what is there decide.
// It never reads what is in a Secret, except to find one that somebody replaced.
package publish
