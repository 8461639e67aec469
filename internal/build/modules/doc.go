// Package modules checks whether the module proxy serves the modules of a part. A proxy may serve a subset of all
// versions, and another subset tomorrow: an optional part (a tool, a judge in tests, an executable of the payload) is
// then skipped with a message.
//
//	go list -deps --> all downloaded | RefusedError: MODULE@VERSION: 403 Forbidden | any other error
package modules
