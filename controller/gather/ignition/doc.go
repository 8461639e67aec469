// Package ignition reads the files and systemd units of an Ignition configuration, the part of a rendered MachineConfig
// that Windows nodes need. It is strict about these fields, ignores the rest and fetches nothing. It links only the
// standard library and a JSON decoder with case-sensitive field names.
//
//	JSON --ParseConfig--> Config: files (path, source, compression, hash), units and drop-ins
//	                Resource --DecodeContents--> contents
//
// Specifications of the versions: https://coreos.github.io/ignition/specs/
package ignition
