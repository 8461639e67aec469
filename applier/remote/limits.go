package remote

import "time"

// Limits are how long each phase may take. Zero is no limit, except where it says otherwise.
type Limits struct {
	// Dial is for the TCP connection.
	Dial time.Duration
	// Handshake is from the TCP connection to the end of the authentication: the server's banner, keys and answers.
	Handshake time.Duration
	// AuthWindow is how long a refused key is tried again: new machines get theirs late. Zero tries once.
	AuthWindow time.Duration
	// Command is for one command from its start to its end.
	Command time.Duration
	// Silence is for a command that neither reads nor prints a byte.
	Silence time.Duration
	// KeepAlive is how often a connection is asked for a sign of life; after Missed without one it is dead. Zero asks never.
	KeepAlive time.Duration
	Missed    int
	// Kept is how long a connection that nobody uses is kept. Zero keeps none.
	Kept time.Duration
}

// DefaultLimits suit machines on the other side of the world, and give up on dead ones within a minute.
func DefaultLimits() Limits {
	return Limits{
		Dial: 15 * time.Second, Handshake: 30 * time.Second, Silence: 15 * time.Minute,
		KeepAlive: 15 * time.Second, Missed: 3, Kept: 5 * time.Minute,
	}
}

// Pauses between two attempts with a refused key.
const (
	firstPause = time.Second
	lastPause  = 15 * time.Second
)

// quiet is how long nothing may come from a connection whose server is asked every KeepAlive.
func (l Limits) quiet() time.Duration { return l.KeepAlive * time.Duration(max(l.Missed, 1)) }
