// Package sshd runs real OpenSSH servers on loopback addresses, each in front of a simulated Windows host. It does not
// depend on tests: sshtest uses it for them, the command machines for demonstrations.
//
//	sshd --ForceCommand--> simhost --> SFTP below the host's folder
//	                             '---> the node agent that was uploaded, for real
//
// Servers listen on 127.0.0.0/8 only and end with the process.
package sshd
