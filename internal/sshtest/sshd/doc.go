// Package sshd runs real OpenSSH servers on loopback addresses, each in front of a simulated Windows machine. It knows
// nothing of tests: sshtest hands its servers to them, the command machines to demonstrations.
//
//	sshd --ForceCommand--> simhost --> SFTP below the machine's folder
//	                             '---> the node program that was uploaded, for real
//
// Servers listen on 127.0.0.0/8 only and end with the process.
package sshd
