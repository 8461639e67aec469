// Package manager has the parts of kube-controller-manager without which no host becomes a node and none is found away, for an API
// server in memory:
//
//	Authority   a CA that signs approved CertificateSigningRequests, approves renewals of kubelets, and removes old requests
//	Lifecycle   Nodes whose kubelet does not renew its Lease are not known to be Ready
//	MakeRoles   what kubelets may do that have no certificate
//
// All ask as an administrator. Certificates expire in the time of the process, which may be virtual.
package manager
