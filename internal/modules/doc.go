// Package modules asks the go command which pinned modules the module proxy serves. A proxy may serve a subset of all
// versions, and another one tomorrow; what is optional (tools, judges of tests, payload) is left out then, and said.
//
//	go list -deps --> everything there | RefusedError: MODULE@VERSION: 403 Forbidden | any other error
//	go list -m all, go.sum --> pins --go list -m -versions, go mod download--> served? nearest listed version
//
// It changes no go.mod and no go.sum.
package modules
