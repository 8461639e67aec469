// Package keys checks the SSH private key of the operator, and derives its public key and hashes.
//
//	Secret cloud-private-key --ReadSecret--> Key, or findings
//	Key --> user data of new Machines (UserDataSecrets), annotations of Nodes (PublicKeyHash, controller/keys/username)
//
// Names and forms are those of the existing operator, so that either can take over from the other. No finding and no
// error has any part of the key. The package opens no connection: it links an SSH library to parse keys as that library
// will use them.
package keys
