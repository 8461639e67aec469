// Package hostsim is a simulated Windows host in memory, for tests: every step on it can fail or be cut. Contract tests
// the clauses of applier/selftest with package testing.
package hostsim
