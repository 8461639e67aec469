// Package machines makes what the Machine API needs to create Windows hosts: the user data with which the operator can
// log in to a new host, and MachineSets.
//
//	platform, public key ----------------> UserData, Secret
//	cluster's MachineSets, flags --model--> MachineSet, findings
//
// A MachineSet is a copy of a worker MachineSet of the same cluster, changed for Windows. The copy keeps the cluster's
// networks, identities and tags, and fields that this package does not know. The package is pure: it reads no cluster
// and no file, and applies nothing.
package machines
