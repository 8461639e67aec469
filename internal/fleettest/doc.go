// Package fleettest tests whole nodes: five simulated Windows machines that were joined over SSH, on a real control plane with the
// operator and the permissions that it ships.
//
//	change of an object --> operator --> Secrets, Role, Nodes --> five node agents --> reports
//	         audit log of the API server: who wrote what
//	         operations of the machines: what was written and restarted
//	         logs of the SSH servers: nobody has logged in
//
// It has nothing but tests.
package fleettest
