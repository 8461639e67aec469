// Package machines makes what the Machine API needs before there is a Windows machine: the user data that lets the
// operator reach a new machine, and MachineSets for it.
//
//	platform, public key ----------------> UserData, Secret
//	cluster's MachineSets, flags --model--> MachineSet, findings
//
// A MachineSet is a worker MachineSet of the same cluster with what Windows needs changed, so that everything the cluster
// knows of itself (networks, identities, tags) comes along, fields that nobody here has heard of included. It is pure: it
// reads no cluster and no file, and applies nothing.
package machines
