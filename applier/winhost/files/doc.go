// Package files reads and writes the files of the host, and locks it for one process.
//
//	write   beside the target, created with its access, flushed, then moved into place (CreateFile, MoveFileEx)
//	links   never followed: an open handle knows its own path, and the folder of a change is held open during it
//	access  one of the bundle's two, as a security descriptor
//
// The translation of accesses and of error codes is in files without a build tag, and is tested on every system.
package files
