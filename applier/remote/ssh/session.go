package ssh

import (
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// session is one channel of a connection.
type session struct {
	*conn
	channel ssh.Channel
	// end is how the command ended, once the channel has.
	end chan ending
	// accepted reports whether the server agreed to what was requested.
	accepted bool
}

// runCommand feeds the command and reads what it prints, until all streams have ended. A connection that is lost before
// is an *InterruptedError. An error of Stdin or Stdout wins over the exit status.
func (s *session) runCommand(ctx context.Context, c remote.Command) error {
	ctx, w := s.watchCommand(ctx, c.Waits)
	defer w.stop()
	defer func() { _ = s.channel.Close() }() // it has ended, or is not wanted any more
	stdin, stderr := make(chan error, 1), make(chan string, 1)
	go func() { stdin <- s.feedStdin(ctx, c, w) }()
	go func() { stderr <- lastLine(s.channel.Stderr()) }()
	out := heardReader{s.channel, w}
	read := c.Stdout(out)
	if read != nil {
		_ = s.channel.Close() // the rest is not read
	} else if _, err := io.Copy(io.Discard, out); err != nil {
		read = err
	}
	complaint, how := <-stderr, <-s.end
	_ = s.channel.Close() // ends a write that waits for a command that has ended
	err := s.commandResult(c, how, complaint, errors.Join(<-stdin, read))
	if ctx.Err() != nil {
		return s.interruptedError(c.Name, context.Cause(ctx))
	}
	return err
}

// feedStdin writes stdin. The end of the stream is sent only if all of it was written: otherwise the command sees a
// stream that was cut.
func (s *session) feedStdin(ctx context.Context, c remote.Command, w *watch) error {
	if c.Stdin != nil {
		err := c.Stdin(ctx, heardWriter{s.channel, w})
		if errors.Is(err, io.EOF) {
			return nil // the command has ended; its status has the cause
		}
		if err != nil {
			_ = s.channel.Close()
			return err
		}
	}
	if err := s.channel.CloseWrite(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// commandResult is the error of a command that has ended.
func (s *session) commandResult(c remote.Command, how ending, stderr string, streams error) error {
	if !how.reported && (!s.isAlive() || s.awaitReply() != nil) {
		return s.interruptedError(c.Name, s.lostReason())
	}
	if how.reported && how.status == 0 {
		return streams
	}
	failed := &remote.CommandError{Target: s.target, Command: c.Name, Status: how.status, Signal: how.signal, Stderr: stderr}
	if streams != nil {
		return errors.Join(streams, failed)
	}
	return failed
}

// ending is how a command ended.
type ending struct {
	status int
	signal string
	// reported is false if the server reported neither.
	reported bool
}

// readEnding waits for the end of the channel (RFC 4254, 6.10).
func readEnding(requests <-chan *ssh.Request) ending {
	how := ending{status: remote.NoStatus}
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
			how = ending{status: int(status.Status), reported: true}
		case r.Type == "exit-signal" && ssh.Unmarshal(r.Payload, &signal) == nil:
			how = ending{status: remote.NoStatus, signal: signal.Name, reported: true}
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a connection that is lost needs no answer
		}
	}
	return how
}

// heardReader and heardWriter reset the limit of silence.
type heardReader struct {
	io.Reader
	*watch
}

// Read implements io.Reader.
func (r heardReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.heard()
	return n, err
}

type heardWriter struct {
	io.WriteCloser
	*watch
}

// Write implements io.Writer.
func (w heardWriter) Write(p []byte) (int, error) {
	n, err := w.WriteCloser.Write(p)
	w.heard()
	return n, err
}

// stderrTail is how much of the end of stderr an error shows, in bytes.
const stderrTail = 2 << 10

// lastLine reads to the end and returns the last bytes as one line.
func lastLine(from io.Reader) string {
	var end []byte
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		end = append(end, buffer[:n]...)
		end = end[max(0, len(end)-stderrTail):]
		if err != nil {
			return strings.Join(strings.Fields(strings.ToValidUTF8(string(end), "?")), " ")
		}
	}
}
