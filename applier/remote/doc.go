// Package remote is a client of the node agent (wmco-node) on other hosts. It asks an agent for facts, how its host differs from a
// manifest, and to apply one. It uploads the agent to a host that lacks it. Everything that changes a host is done by the agent.
//
// A command runs C:\k\agent\wmco-node-<digest12>.exe with plain words, stdin and stdout. A host in sync costs one command,
// a change costs two. From Apply to the channel there are at most six calls:
//
//	Agent.Apply
//	  1 compare, send         observe, with the index as stdin; apply, with the missing contents as stdin
//	    2 run                 adds --text where the shell damages stdin
//	      3 check             only after an upload: the version of the agent that was uploaded
//	        4 Transport.Run   applier/remote/ssh: reads and writes the streams
//	          5 start         takes a kept connection or dials, replaces a dead one
//	            6 SendRequest "exec", in a channel that is open already where the connection was kept
//
// Decisions depend on exit status, JSON and error types, never on text that a host prints for people.
//
// The package renders nothing, reads no cluster and links no SSH library: the Transport is handed in.
package remote
