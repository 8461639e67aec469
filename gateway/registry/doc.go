// Package registry asks registries for manifests and layers, with credentials. It is a client of the distribution API
// (github.com/opencontainers/distribution-spec; token exchange: distribution.github.io/distribution/spec/auth/token).
//
//	Request --https, or http for an insecure place--> 401? --challenge--> token server --> the same request with a token --> Response
//
// Credentials go to the place and to the token server that it names, nowhere else. The package decides nothing about which place is asked.
package registry
