// Package hosts reaches the Windows hosts of a cluster over SSH for the operator: with the key of the Secret
// cloud-private-key, and host keys that are pinned in the ConfigMap windows-ssh-host-keys.
//
//	Login (Secret, ConfigMap) --handed in by cmd--> remote.Transport --> Hosts.ApplyBundle: facts -> render -> apply -> confirm
//
// A host is worked on by one caller at a time. The package links no SSH client: cmd makes the transport from a Login.
package hosts
