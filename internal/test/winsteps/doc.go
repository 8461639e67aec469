// Package winsteps has what the payload steps of hack/windows-steps need: they apply a bundle to the Windows machine
// that they run on, a spare one or one under Wine.
//
//	standin      an API server of one Node and a registry, on the machine
//	cmd/inputs   writes the certificates and the published bundles; it runs beside wmco
//	cmd/payload  the steps; it runs on the Windows machine
package winsteps
