// Package hosttest is what tests of appliers and hosts need: a host in memory on which everything can go wrong, and the
// contract of applier.Host, which every host passes.
//
//	Contract --Host's operations--> a Machine's host --> the machine
//	    '-----what others do there--> Machine's capabilities -'
//
// It needs no particular system: the contract runs on Windows as well.
package hosttest
