// Package release packs built programs into a release. It is a module of its own, because the operator must not link
// what makes images.
//
//	programs, payload, bills --Image--> OCI layout      programs --Archive--> archives, krew manifest
//	two lists of executables --Notes--> what changed    folder --Sums--> checksums, table
//
// The same inputs give the same bytes: the time of everything is that of the commit, which the caller gives.
package release
