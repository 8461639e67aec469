// Package remote is a client of the node agent (wmco-node) on other hosts. It asks an agent for facts, how its host
// differs from a manifest, and to apply one. It uploads the agent to a host that lacks it. Everything that changes a
// host is done by the agent.
//
// A command runs C:\Windows\wmco\wmco-node-<digest12>.exe with plain words, stdin and stdout. A host in sync costs one
// command, a change costs two. The first one of a client on a host reads the agent there back first, and uploads it
// where it is missing or differs. From Apply to the channel there are at most seven calls:
//
//	Agent.Apply
//	  1 compare, send         observe, with the index as stdin; apply, with the missing contents as stdin
//	    2 run                 ready: reads the agent back; adds --text where the shell damages stdin
//	      3 start             limits the time
//	        4 Transport.Run   applier/remote/ssh: reads and writes the streams
//	          5 start         takes a kept connection or dials, replaces a dead one
//	            6 request     opens a channel, unless one is open already where the connection was kept
//	              7 SendRequest "exec"
//
// What a host answers is bounded while it is read (answer.go), and so is the time of each phase (Limits).
//
// Decisions depend on exit status, JSON and error types, never on text that a host prints for people.
//
// The package renders nothing, reads no cluster and links no SSH library: the Transport is handed in.
package remote
