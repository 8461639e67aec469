// Package base is what the controllers of the operator stand on: a manager that ends when another process leads, a
// cache of what is wanted and no more, kinds that the cluster may begin to serve or to refuse while the operator works,
// and pauses between tries that are short.
package base
