// Package networks reads and changes the networks of the host: IPv4 routes, and the networks and endpoints of the Host
// Networking Service (HNS). It also reads the facts about addresses.
//
//	routes     the IP helper for active routes, the registry for persistent ones
//	HNS        github.com/Microsoft/hnslib, which kube-proxy uses too
//
// As in package settings, the decisions are in files without a build tag and the API of Windows is behind small
// interfaces. Wine has no HNS and no function that changes routes.
package networks
