// Package sshtest starts OpenSSH servers in front of simulated Windows hosts, behind a slow or broken network.
//
//	test --Line (delay, rate, cut)--> sshd --ForceCommand--> simhost --> SFTP below the host's folder
//	                                                            '------> the node agent that was uploaded, for real
//
// A host is a folder in which C:\k\x is C/k/x. Its shell reads command lines as cmd.exe, PowerShell or sh would.
// Servers listen on 127.0.0.0/8 only and end with the test, or with the process. Package sshd starts them; this package
// ties them to a test.
package sshtest
