// Package ssh stands in for the real one.
package ssh
