// Package winnode tests wmco-node.exe on Windows under Wine. The tests run it as wmco does on a node: archives on
// stdin, JSON on stdout, and services with stand-ins for their programs. One test reaches it over SSH. The program is
// built with main.wine=yes, see cmd/wmco-node.
//
//	stub        the behaviour and the program of stand-ins
//	stubpayload a payload folder of them
//	cmd         programs of hack/demo-windows.sh: one writes a payload folder of stand-ins, one runs Windows for a script
package winnode
