// Package ssh reaches hosts over SSH: it dials, checks host keys, runs commands, transfers files, and keeps connections
// for the next command. It knows no command of the node agent.
//
//	Transport.Run, Transfer
//	  start                 one channel on a connection
//	    kept, or dial       a kept connection that is dead before the host answered is replaced
//	    request             "exec" or "subsystem", in a channel
//	  session               its streams, and how it ended
//
// Every phase has a limit (Limits), and every wait ends with its context. Host keys are pinned on first contact (Pins).
package ssh
