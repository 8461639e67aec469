// Package gitopshealth runs the health checks of docs/gitops with the evaluators of Argo CD and Flux: Argo CD's Lua
// (gopher-lua, with the libraries that Argo CD opens) and Flux's CEL and kstatus. The objects are those of an API
// server: the status of each is written as controller/status sums it up (testdata).
package gitopshealth
