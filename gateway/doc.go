// Package gateway is a registry proxy on the node. containerd uses it for images whose mirrors cannot be expressed in hosts.toml. The bundle contains
// a table that lists, for each image, where to look for it: mirrors and registries, in order. The gateway tries these places in that order and returns
// the first response with the image.
//
//	containerd --client certificate--> Handler --places.Decide--> registry.Client --> mirrors, then the registry of the image
//	                                      ^ learned: which tag a digest belongs to; health: which places failed
//
// It is read-only. It rejects content with a wrong digest, follows redirects itself, and sends credentials only to the place that they belong to.
package gateway
