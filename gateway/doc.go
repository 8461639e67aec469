// Package gateway is a registry proxy on the node. containerd uses it for images whose mirrors cannot be expressed in hosts.toml. For each image,
// the table of the bundle lists places in order: mirrors and registries. The gateway asks them in that order, and returns the first answer that has it.
//
//	containerd --client certificate--> Handler --places.Decide--> registry.Client --> mirrors, source
//	                                      ^ learned: which tag a digest belongs to; health: which places failed
//
// It is read-only. It rejects content with a wrong digest, follows redirects itself, and sends credentials only to the place that they belong to.
package gateway
