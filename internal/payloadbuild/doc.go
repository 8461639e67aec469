// Package payloadbuild builds the Windows executables of the payload table from their pinned modules, and nothing else: no
// download but the Go module proxy's, checked by each module's go.sum.
//
//	table --choose--> recipes --stale?--> go build --inspect--> .exe --pack--> bin/payload/<name>.exe.zst
//	                     |                    |                                bin/payload/payload.json
//	                     '------ stamp <------'--build information--> bin/sbom/<name>.cdx.json
//
// The same modules and the same Go give the same bytes on any machine. An executable is built again when its recipe is
// another: its go.mod or go.sum, its flags, the release of Go, or, for ours, a source file.
package payloadbuild
