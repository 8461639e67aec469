// Package inuse reads what an operator has in use, for programs that only look: the public halves of the keys with
// which it signs, and the bundles that it has published for nodes.
//
//	Secret windows-desired-state-signing --LookUpKeys--> public keys, or a finding why none are known
//	Nodes, layers in Secrets --ReadLayers--> Layers --Open--> the bundle that a node has
//	                                              `--OpenSigned--> the same, if one of the keys has signed it for the node
//
// It writes nothing, and keeps no private key.
package inuse
