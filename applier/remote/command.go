package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// command is one command on a machine.
type command struct {
	// line runs it in a process of its own, serve begins a session that runs it by its words; empty for no session.
	line  string
	serve string
	words []string
	// name is what errors call it: its words without the program's path.
	name string
	// stdin writes what the command reads; nil for nothing. A command that ends before it has read everything is no error.
	stdin func(context.Context, io.Writer) error
	// stdout reads what the command prints.
	stdout func(io.Reader) error
}

// stderrTail is how much of the end of stderr an error tells, in bytes.
const stderrTail = 2 << 10

// execute runs a command: in a process of its own, or, on a connection that has proved to last, in the session. errNoSession
// says that there cannot be one; other errors are those of run.
func (c *conn) execute(ctx context.Context, cmd command) error {
	if cmd.serve != "" && c.answers >= sessionAfter {
		return c.inSession(ctx, cmd)
	}
	o, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.run(ctx, o, cmd)
}

// run runs the command in its channel. It returns when all its streams have ended. A command that ends in another status
// than 0 is a *CommandError, a connection that is lost meanwhile an *InterruptedError; what stdin and stdout return wins,
// unless it is but the consequence of these.
func (c *conn) run(ctx context.Context, o opened, cmd command) error {
	return c.limited(ctx, cmd, func(ctx context.Context, n noise) error {
		r := &running{conn: c, channel: o.channel, command: cmd, noise: n}
		return r.run(ctx, o.requests)
	})
}

// limited is watched, for commands: they have a limit of their own.
func (c *conn) limited(ctx context.Context, cmd command, run func(context.Context, noise) error) error {
	if c.limits.Command > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.limits.Command, fmt.Errorf("it runs longer than %s", c.limits.Command))
		defer stop()
	}
	return c.watched(ctx, cmd.name, run)
}

// watched ends the connection when the context ends or nobody says anything any more: an *InterruptedError.
func (c *conn) watched(ctx context.Context, name string, run func(context.Context, noise) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.guard(ctx)()
	n := c.silence(cancel)
	defer n.stop()
	err := run(ctx, n)
	if ctx.Err() != nil {
		return &InterruptedError{Target: c.target, Command: name, Err: context.Cause(ctx)}
	}
	return err
}

// silence cancels when nobody says anything for Limits.Silence.
func (c *conn) silence(cancel context.CancelCauseFunc) noise {
	limit := c.limits.Silence
	if limit <= 0 {
		return noise{}
	}
	return noise{limit, time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing came or went for %s", limit)) })}
}

// noise is any byte that a command reads or prints.
type noise struct {
	limit time.Duration
	timer *time.Timer
}

func (n noise) heard() {
	if n.timer != nil {
		n.timer.Reset(n.limit)
	}
}

func (n noise) stop() {
	if n.timer != nil {
		n.timer.Stop()
	}
}

// running is a command that runs.
type running struct {
	*conn
	channel ssh.Channel
	command command
	noise   noise
}

func (r *running) run(ctx context.Context, requests <-chan *ssh.Request) error {
	defer func() { _ = r.channel.Close() }() // it has ended, or nobody wants it any more
	accepted, err := r.channel.SendRequest("exec", true, execRequest(r.command.line))
	if err != nil {
		return &InterruptedError{Target: r.target, Command: r.command.name, Err: err, unheard: true}
	}
	if !accepted {
		return &CommandError{Target: r.target, Command: r.command.name, Status: NoStatus, Stderr: "the SSH server refuses to run commands"}
	}
	stdin, stderr, end := make(chan error, 1), make(chan string, 1), make(chan ending, 1)
	go func() { stdin <- r.write(ctx) }()
	go func() { stderr <- tail(r.channel.Stderr()) }()
	go func() { end <- readEnding(requests) }()
	read := r.command.stdout(listening{r.channel, r.noise})
	if read != nil {
		_ = r.channel.Close() // nobody reads the rest
	} else if _, err := io.Copy(io.Discard, listening{r.channel, r.noise}); err != nil {
		read = err
	}
	complaint := <-stderr
	how := <-end
	_ = r.channel.Close() // lets go of a write that waits for a command that has ended
	return r.judge(r.command, errors.Join(<-stdin, read), how, complaint)
}

// execRequest asks for a command (RFC 4254, 6.5).
func execRequest(line string) []byte { return ssh.Marshal(struct{ Command string }{line}) }

// write feeds the command. Without the end of the stream the command knows that it was cut.
func (r *running) write(ctx context.Context) error {
	if r.command.stdin != nil {
		err := r.command.stdin(ctx, feeding{r.channel, r.noise})
		if errors.Is(err, io.EOF) {
			return nil // the command has ended; its status tells why
		}
		if err != nil {
			_ = r.channel.Close()
			return err
		}
	}
	if err := r.channel.CloseWrite(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// judge tells how a command ended.
func (c *conn) judge(cmd command, streams error, how ending, stderr string) error {
	var negative *CommandError
	if how != (ending{status: 0, told: true}) {
		negative = &CommandError{Target: c.target, Command: cmd.name, Status: how.status, Signal: how.signal, Stderr: stderr}
	}
	switch {
	case !how.told && (!c.alive() || c.ask() != nil):
		return &InterruptedError{Target: c.target, Command: cmd.name, Err: c.lost()}
	case streams != nil:
		return errors.Join(streams, asError(negative))
	}
	return asError(negative)
}

// asError keeps a nil pointer from becoming an error.
func asError(e *CommandError) error {
	if e == nil {
		return nil
	}
	return e
}

// ending is how a command ended, as the server told it.
type ending struct {
	status int
	signal string
	told   bool
}

// readEnding waits for the end of the channel (RFC 4254, 6.10).
func readEnding(requests <-chan *ssh.Request) ending {
	how := ending{status: NoStatus}
	for r := range requests {
		var status struct{ Status uint32 }
		var signal struct {
			Name       string
			CoreDumped bool
			Message    string
			Language   string
		}
		switch {
		case r.Type == "exit-status" && ssh.Unmarshal(r.Payload, &status) == nil:
			how = ending{status: int(status.Status), told: true}
		case r.Type == "exit-signal" && ssh.Unmarshal(r.Payload, &signal) == nil:
			how = ending{status: NoStatus, signal: signal.Name, told: true}
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a connection that is lost needs no answer
		}
	}
	return how
}

// listening and feeding tell the noise of a command's streams.
type listening struct {
	from  io.Reader
	noise noise
}

// Read implements io.Reader.
func (l listening) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	l.noise.heard()
	return n, err
}

type feeding struct {
	to    io.Writer
	noise noise
}

// Write implements io.Writer.
func (f feeding) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.noise.heard()
	return n, err
}

// tail reads to the end and returns the last bytes as text of one line.
func tail(from io.Reader) string {
	var end last
	_, _ = io.Copy(&end, from) // what came is told
	return end.text()
}

func oneLine(text []byte) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "?")), " ")
}
