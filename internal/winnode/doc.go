// Package winnode holds the real wmco-node.exe to what it promises, on a Windows under Wine. The tests drive it as wmco does
// on a node: archives on stdin, JSON on stdout, and services whose programs are stand-ins. One reaches it over SSH.
//
//	stub        what stand-ins do, and their program
//	cmd         a payload folder of stand-ins, and a Windows for a script: hack/demo-windows.sh
package winnode
