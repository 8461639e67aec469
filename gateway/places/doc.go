// Package places decides where the images of a node come from: the registries and mirrors that are asked for an image, in which order, or why
// none is. It decides as registries.conf and policy.json do on Linux nodes (github.com/containers/image, sysregistriesv2 and signature).
//
//	mirror sets, Image/cluster --render/mirrors--> Table --file of the bundle--> Table.Decide(Image) --> Decision
//
// The package is pure: it asks no registry and reads no file.
package places
