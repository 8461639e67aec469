// Package session runs commands of the node program one after another in one process: over a connection that is kept, to
// start a process costs more than most commands do. Words, stdin, stdout, stderr and exit status of each command go through
// as they are, and a command does what it does in a process of its own. It knows neither SSH nor what commands mean.
//
//	Caller                                    Serve
//	                                   <--    hello
//	words, stdin ..., end              -->
//	                                   <--    stdout ..., stderr ..., status
//	words, ...                         -->
//
// Nobody waits for the other before he sends, so a command takes one round trip. Where a stream ends between two frames
// the session is over; anywhere else it was cut, and the command that ran sees a stdin that was cut.
package session
