// Package ignition reads the files and systemd units of an Ignition configuration, the part of a rendered MachineConfig
// that Windows nodes need. It is strict about what it reads and ignores the rest, fetches nothing, and links nothing
// but the standard library and a JSON decoder that keeps the case of field names.
//
//	JSON --Parse--> Config: files (path, source, compression, hash), units and drop-ins
//	                Resource --Decode--> contents
//
// Specifications of the versions: https://coreos.github.io/ignition/specs/
package ignition
