// Package ignition reads files and systemd units of a rendered MachineConfig (Ignition). It is strict about these
// fields, ignores the rest and fetches nothing. It links only the standard library and a JSON decoder with
// case-sensitive field names.
//
//	JSON --ParseConfig--> Config: files (path, source, compression, hash), units and drop-ins
//	                Resource --DecodeContents--> contents
//
// Specifications of the versions: https://coreos.github.io/ignition/specs/
package ignition
