// Package bundle holds the complete desired state of one Windows node as one value with one
// digest, and the findings and facts that go with it.
//
//	cluster layer (same for every node of a platform and stage; holds the secrets) --.
//	                                                                                  >-- bundle --> one digest
//	node layer (small, no secrets) ---------------------------------------------------'
//
// It encodes, decodes, compares and digests bundles. It never reads a file, a cluster or a clock. It links only the
// standard library and go-digest, because the node agent links it too.
package bundle
