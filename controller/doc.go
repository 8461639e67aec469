// Package controller is the operator: a manager, and one reconciler for each kind of work.
//
//	objects of the cluster --watch, cache--> desired (gather, render) --> publish --> Secrets, Nodes
//
// A reconciler keeps nothing between calls: what is in the cluster decides.
package controller
