// Package remote reaches machines over SSH: it puts the node program there and asks it what the machine is, how it
// differs from a manifest, and to apply one. Everything that is done to the machine is done by the node program.
//
//	Client --Machine(target)--> Machine: Observe, Verify, Apply, Confirm, Facts
//	  |                            |
//	  |                        exec  C:\\k\\agent\\wmco-node-<digest12>.exe observe   < manifest   > JSON
//	  |                            |  no such program: SFTP puts it there, once
//	  '-- pool of connections <----'  kept for the next question; a dead one is replaced before a command runs
//	                                  one that is asked a third time keeps the program too (applier/session)
//
// A connection has limits for every phase, and ends at once with its context. Host keys are pinned when a machine is met
// first. Nothing is ever told apart by a text that the machine prints: exit status, JSON, and types of errors.
//
// It never renders, never reads a cluster, and keeps nothing of a machine but its connection, its host key, and which contents
// it left there.
package remote
