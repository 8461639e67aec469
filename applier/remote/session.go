package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/session"
)

// sessionAfter is how many commands of a connection must have answered from processes of their own, before one process runs
// all that come: a machine that was asked twice is likely to be asked again. By then the program is on the machine, and its
// shell is known not to take stdin for text.
const sessionAfter = 2

// serving is a session of the node program in a channel.
type serving struct {
	*session.Caller
	channel ssh.Channel
	stderr  chan string
	end     chan ending
	// mute tells that it has said nothing at all in time.
	mute atomic.Bool
}

// errNoSession says that the program on the machine runs no sessions.
var errNoSession = errors.New("no session")

// inSession runs a command in the session, which is begun if there is none.
func (c *conn) inSession(ctx context.Context, cmd command) error {
	return c.limited(ctx, cmd, func(ctx context.Context, n noise) error {
		if c.session == nil {
			if err := c.begin(cmd); err != nil {
				return err
			}
		}
		var complaint last
		how, err := c.session.Call(session.Call{
			Words: cmd.words, Stdin: cmd.feeder(ctx, n), Stderr: &complaint,
			Stdout: func(r io.Reader) error { return cmd.stdout(listening{r, n}) },
		})
		if err != nil {
			return c.broken(cmd, how, err)
		}
		return c.judge(cmd, nil, ending{status: how.Status, told: true}, complaint.text())
	})
}

// feeder is the command's stdin for a session.
func (cmd command) feeder(ctx context.Context, n noise) func(io.Writer) error {
	if cmd.stdin == nil {
		return nil
	}
	return func(w io.Writer) error { return cmd.stdin(ctx, feeding{w, n}) }
}

// begin starts the program.
func (c *conn) begin(cmd command) error {
	o, err := c.channel()
	if err != nil {
		_ = c.close()
		return err
	}
	accepted, err := o.channel.SendRequest("exec", true, execRequest(cmd.serve))
	if err != nil {
		return &InterruptedError{Target: c.target, Command: cmd.name, Err: err, unheard: true}
	}
	if !accepted {
		return errors.Join(errNoSession, o.channel.Close())
	}
	s := &serving{channel: o.channel, stderr: make(chan string, 1), end: make(chan ending, 1)}
	s.Caller = session.NewCaller(s.greeting(c), halfClosing{o.channel})
	go func() { s.stderr <- tail(o.channel.Stderr()) }()
	go func() { s.end <- readEnding(o.requests) }()
	c.session = s
	return nil
}

// greeting is what a program prints that has to begin soon.
type greeting struct {
	io.Reader
	late *time.Timer
}

// Read implements io.Reader.
func (g greeting) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.late.Stop()
	return n, err
}

// greeting lets a program take as long to say that it serves as a server to let us in. The connection of one that says nothing
// ends: a server does not end the channel of a program that goes on.
func (s *serving) greeting(c *conn) io.Reader {
	if c.limits.Handshake <= 0 {
		return s.channel
	}
	return greeting{s.channel, time.AfterFunc(c.limits.Handshake, func() {
		s.mute.Store(true)
		_ = c.close()
	})}
}

// halfClosing ends a program's stdin and goes on reading what it prints.
type halfClosing struct{ ssh.Channel }

// Close implements io.Closer.
func (h halfClosing) Close() error { return h.CloseWrite() }

// broken ends a session that failed in the middle of a command, and tells why it did.
func (c *conn) broken(cmd command, came session.Ending, err error) error {
	s := c.session
	c.session = nil
	if came.Told || !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = s.channel.Close() // it goes on: nobody listens any more
	}
	complaint, how := <-s.stderr, <-s.end
	_ = s.channel.Close()
	s.Wait()
	if s.mute.Load() {
		return fmt.Errorf("%w: it says nothing", errNoSession)
	}
	if came.Told {
		return c.judge(cmd, err, ending{status: came.Status, told: true}, complaint)
	}
	if !how.told && (!c.alive() || c.ask() != nil) {
		return &InterruptedError{Target: c.target, Command: cmd.name, Err: c.lost(), unheard: !came.Heard, mayHaveRun: true}
	}
	if !came.Heard && (errors.Is(err, session.ErrMalformed) || errors.Is(err, io.ErrUnexpectedEOF)) {
		// It is none, or ended while nobody asked: a process of its own tells more.
		return fmt.Errorf("%w: %w", errNoSession, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // how it ended tells more
	}
	return c.judge(cmd, err, how, complaint)
}

// hangUp ends the session, if there is one. A server that allows no channel beside it may take a while to notice: then a new
// connection takes this one's place.
func (c *conn) hangUp() {
	if s := c.session; s != nil {
		c.session = nil
		_ = s.channel.Close() // it was idle
	}
}

// last keeps the end of what is written.
type last struct{ bytes []byte }

// Write implements io.Writer.
func (l *last) Write(p []byte) (int, error) {
	l.bytes = append(l.bytes, p...)
	if extra := len(l.bytes) - stderrTail; extra > 0 {
		l.bytes = bytes.Clone(l.bytes[extra:])
	}
	return len(p), nil
}

// text is in one line.
func (l *last) text() string { return oneLine(l.bytes) }
