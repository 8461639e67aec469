// Package hostsim has what tests of appliers and hosts need: Contract, which tests the clauses of applier/selftest with
// package testing, and a host in memory, on which every step can fail or be cut.
package hostsim
