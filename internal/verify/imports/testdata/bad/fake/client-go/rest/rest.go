// Package rest stands in for the real one.
package rest
