// Package network gives tests networks of their own, in which nothing else listens.
package network
