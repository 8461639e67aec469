// Package selftest has the contract of applier.Host as a list of clauses, and runs it on any host: in tests on the
// simulated hosts, in `wmco-node selftest` on the Windows that the program runs on.
//
//	Parts --operations----------> Host of a Fixture --> Windows, real or simulated
//	  '-----what other programs do--> capabilities of the Fixture --'
//
// It uses names of its own only (names.go), so that it harms no machine on which nothing else has them. It links no
// package testing: it is a part of the shipped program.
package selftest
