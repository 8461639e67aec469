// Package strange has no row.
package strange
