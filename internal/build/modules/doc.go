// Package modules asks the go command which pinned modules the module proxy serves. A proxy may serve a subset of all
// versions, and another subset tomorrow. Optional parts (tools, consumers in tests, payload) are then skipped with a message.
//
//	go list -deps --> all available | RefusedError: MODULE@VERSION: 403 Forbidden | any other error
//	go list -m all, go.sum --> pins --go list -m -versions, go mod download--> served? nearest listed version
//
// It does not change any go.mod or go.sum.
package modules
