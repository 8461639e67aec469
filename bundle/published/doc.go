// Package published has the formats of published bundles and of reports of node agents.
//
//	bundle --Pack--> cluster layer: Secrets, a part each     --.
//	            `--> node layer: inside Desired, or Secrets     >-- Open --> bundle with its contents
//	                 Desired: an annotation of the Node      --'
//	node --> Report: an annotation of the Node
//
// The operator writes what the node agent reads, and the reverse. Either program may be older than the other. The
// package makes no requests and trusts nothing that it reads.
package published
