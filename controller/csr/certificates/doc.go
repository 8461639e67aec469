// Package certificates has the rules for certificate signing requests: which ones the operator approves.
//
//	CSR, hosts, Nodes --DecideRequest--> Approve | Ask (a host, over SSH) | Leave, with or without an Event
//
// It approves three kinds, each only for a host that the operator manages:
//
//	client certificate of a kubelet, first     an entry of windows-instances   the key must be the one pending on the host
//	serving certificate of a kubelet           an entry of windows-instances   names and addresses must be the host's
//	client certificate of cloud-node-manager   any Windows host on Azure       the requester must be the node itself
//
// A name or an address is the host's if the host or the resolver claims it and nothing shows that it is another's: a
// Machine's, another Node's, that of a host by the operator's records, or the cluster's (API server, routes, services,
// Pods). An address is one at which the operator has reached the host besides, under its pinned key. So for a host
// with several adapters, these are the addresses at which its SSH server answers.
//
// Everything else is left alone and never denied: renewals of client certificates are approved by Kubernetes itself,
// hosts of Machines by the cluster's machine approver, hybrid-overlay-node's by the network operator, and other nodes
// by whoever installs them. Fields of a Node object are never evidence: the node writes them itself.
//
// The package makes no requests and writes nothing.
package certificates
