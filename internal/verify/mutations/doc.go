// Package mutations checks the tests: it breaks a line that safety depends on, runs the tests that are named beside it,
// and expects one of them to fail.
//
//	list/*.yaml --> the copy of the tree --named tests pass--> one mutation --build, test--> killed, or survived
//	                     ^ below bin; the working tree is only read               '-- put back, the next one
//
// The list is for people. A file of it is a sequence of
//
//   - name: ledger-last          # what it is called on the command line
//     sentence: The ledger is written after everything that it names is on the host.
//     file: applier/apply.go     # the changed file; Go or any other file of the tree
//     old: the text              # exactly once in the file; short, so that other changes leave it alone
//     new: another text          # without it, old is removed
//     package: ./applier         # where the tests are
//     tests: [TestA, TestB/case] # their names, as go test prints them
//     needs: control plane       # or wine; without it, the tests run in memory and are short
//
// A mutation is killed if one of its tests fails. It survives if they pass, and then the run fails. The run also fails
// where the list does not fit the tree: the old text is not in the file exactly once, a test is missing or fails
// without the mutation, or the mutated package does not compile. Tests that are skipped judge nothing, which is
// reported as skipped.
package mutations
