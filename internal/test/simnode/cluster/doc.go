// Package cluster is what a real cluster has around the machines of package simnode, on a control plane of tests:
//
//	Connect   writes into the cluster's objects where its API server is, and a bootstrap token that works
//	Approve   approves the certificates of kubelets, as the cluster's machine approver does
//	Network   gives Windows Nodes their subnets and approves the certificates of hybrid-overlay-node, as OVN-Kubernetes does
//
// Certificates are signed by the controller manager (testenv.Environment with Controllers).
package cluster
