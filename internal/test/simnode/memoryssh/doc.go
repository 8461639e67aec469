// Package memoryssh has SSH servers in memory, in front of machines of package simnode that are in memory. The operator's client is the real one
// (applier/remote/ssh), and so are SSH and SFTP (golang.org/x/crypto/ssh, github.com/pkg/sftp). A command of wmco-node runs in this process, with
// the code of cmd/wmco-node, after the program that was uploaded is checked as it checks itself. It runs in a bubble of testing/synctest.
//
// What differs from OpenSSH on Windows: the shell is cmd.exe, as far as its rules for command lines go; a command whose connection ends is
// interrupted and ends in order, and a file that is written over SFTP has its contents when it is closed.
package memoryssh
