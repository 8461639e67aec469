// Package archive writes and reads the stream to a host: the manifest of a bundle and the contents that the host lacks.
//
//	stream = zstd( tar( MANIFEST.json, contents.json, contents/<part>... ) )
//
//	render --> Bundle --FromBundle--.
//	                                 Source --Send--> stream --Reader--> parts --(kept on the node)--> Decode --> raw bytes
//	payload store ------------------'--Deliver--> the same parts, for a reader in this process
//
// Contents are stored and sent as zstd, in parts of PartSize, so that an interrupted transfer loses at most one part.
// The outer zstd is at its fastest level: it is there for the manifest, because the parts are compressed already.
//
// A content has two names. Its digest is the bundle's name for it, keyed for a secret. Its SHA-256 is of the raw bytes:
// parts are named by it and the host checks it. The SHA-256 of a secret allows guessing it, so it stays in the stream
// and on the host that has the secret anyway, and errors name contents by their digests.
//
// The package opens no file and uses no name from a stream as a path. It trusts no stream: everything is limited and
// checked before it is returned, and a content is only whole when Decode has ended with io.EOF.
package archive
