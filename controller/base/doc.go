// Package base has the queues, caches and clients of the controllers: a manager that ends when another process leads, a
// cache of the wanted objects alone, kinds that the cluster begins or ceases to serve, and short backoffs.
package base
