// Package hosts reaches the Windows hosts of a cluster over SSH for the operator, with the key of the Secret
// cloud-private-key and the pinned host keys of the records.
//
//	Login (Secret, ConfigMap) --handed in by cmd--> remote.Transport --> Hosts.ApplyBundle: facts -> render -> apply -> confirm
//
// One caller works on a host at a time. The package links no SSH client: cmd makes the transport from a Login.
package hosts
