// Package testrun runs go test and prints what a person needs of it: one line for each package, the reason of each
// failure, and the counts last.
//
//	go test -json --> events --> packages: ok PACKAGE SECONDS
//	                        '--> failures: the lines of t.Error, and the file that has the whole output
//	                        '--> skips:    counted with their reasons; one that is not allowed is a failure
//	failed tests --go test -json -run '^TEST$'--> passed: named at the end | failed, skipped or not run: a failure
//
// It decides from the events of go test alone (go doc test2json), never from texts.
package testrun
