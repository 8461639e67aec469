// Package hostsim has what tests of appliers and hosts need: the contract of applier.Host, which every host passes, and a
// host in memory, on which every step can fail or be cut.
//
//	Contract --operations----------> Host of a Fixture --> Windows, real or simulated
//	    '-----what other programs do--> capabilities of the Fixture --'
//
// It runs on every system: on Windows the contract is tested against the real host.
package hostsim
