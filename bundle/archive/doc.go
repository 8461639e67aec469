// Package archive is what travels to a node: the manifest of a bundle and the contents that the node lacks.
//
//	stream = zstd( tar( MANIFEST.json, contents.json, contents/<part>... ) )
//
//	render --> Bundle --FromBundle--.
//	                                 Source --Send--> stream --Reader--> parts --(kept on the node)--> Decode --> raw bytes
//	payload store ------------------'
//
// Contents are stored and travel as zstd, cut into parts of PartSize, so that a transfer that was cut loses one part at
// most. The outer zstd is the fastest one: it is there for the manifest, the parts are compressed already.
//
// A content has two names. Its digest is the bundle's name for it, keyed for a secret. Its SHA-256 is of the raw bytes; the
// parts bear it and the node checks it. The SHA-256 of a secret invites guessing: it stays in the stream and on the machine
// that holds the secret anyway, and errors name contents by their digests.
//
// The package opens no file and takes no name from a stream as a path. It trusts no stream: everything is bounded and
// checked before it is handed on, and a whole content only counts when Decode has ended in io.EOF.
package archive
