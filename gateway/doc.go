// Package gateway is a registry on the node from which containerd pulls the images that hosts files cannot route: it asks the places that the
// table of the bundle gives for each image, in their order, and passes on what the first one has.
//
//	containerd --client certificate--> Handler --places.Decide--> registry.Client --> mirrors, source
//	                                      ^ learned: which tag a digest belongs to; health: which places failed
//
// It only reads. Nothing is passed on whose digest is wrong, no redirect, and no credential to another place than its own.
package gateway
