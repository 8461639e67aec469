// Package base holds what the controllers of the operator share: a manager that ends when another process leads, a cache of the wanted objects
// alone, kinds that the cluster may begin to serve or to refuse while the operator works, and pauses between tries that are short.
package base
