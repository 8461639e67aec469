// Package sshtest gives tests real OpenSSH servers on loopback addresses, each in front of a simulated Windows machine, and
// a network between the test and them that is slow or breaks.
//
//	test --Line (delay, rate, cut)--> sshd --ForceCommand--> simhost --> SFTP below the machine's folder
//	                                                            '------> the node program that was uploaded, for real
//
// A machine is a folder in which C:\k\x is C/k/x. Its shell reads command lines as cmd.exe, PowerShell or sh would. Servers
// listen on 127.0.0.0/8 only and end with the test, or with the process. What starts them, for tests and for
// demonstrations, is sshd; here it is bound to a test.
package sshtest
