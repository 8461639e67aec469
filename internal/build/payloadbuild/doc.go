// Package payloadbuild builds the Windows executables of the payload table from their pinned modules. It downloads only
// from the Go module proxy, and each module's go.sum checks that.
//
//	table --choose--> recipes --stale?--> go build --inspect--> .exe --pack--> bin/payload/<name>.exe.zst
//	                     |                    |                                bin/payload/payload.json
//	                     '------ stamp <------'--build information--> bin/sbom/<name>.cdx.json
//
// The same modules and the same release of Go give the same bytes on any computer. An executable is built again if its
// recipe changes: its go.mod or go.sum, its flags, the release of Go, or, in this module, a source file.
package payloadbuild
