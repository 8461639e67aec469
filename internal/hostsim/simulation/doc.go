// Package simulation is a Windows host without Windows: files, a service control manager, settings and health that
// behave as Windows documents. A Script has the faults. It never runs a program and never reads a clock of
// its own. It keeps nothing in memory: State and files are in a Storage, one Save for each step, so that a cut leaves
// what it leaves on a real host.
//
//	operation of Host --> check against State.Script
//	                        |--> Disk: one plain operation after the other
//	                        '--> Store: Load, change, Save
//
// It must not import package testing: wmco-node has it, for folderhost.
package simulation
