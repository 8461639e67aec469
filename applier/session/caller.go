package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
)

// Caller is the other end of a session, for one command at a time. After an error of Call it is of no more use.
type Caller struct {
	in    frames
	out   io.WriteCloser
	heard bool
	// writing is the goroutine that sends a command.
	writing sync.WaitGroup
}

// NewCaller talks to a program that serves: from reads what it prints, to is its stdin. Nothing is read before Call.
func NewCaller(from io.Reader, to io.WriteCloser) *Caller {
	return &Caller{in: frames{from: bufio.NewReaderSize(from, buffer)}, out: to}
}

// Close ends the session.
func (c *Caller) Close() error { return c.out.Close() }

// Wait returns when nobody calls Stdin any more: after an error of Call, once what the Caller writes to is closed.
func (c *Caller) Wait() { c.writing.Wait() }

// Call is one command.
type Call struct {
	// Words are without the program's name.
	Words []string
	// Stdin writes what the command reads; nil for nothing. It gets io.EOF when the command has ended.
	Stdin func(io.Writer) error
	// Stdout reads what the command prints.
	Stdout func(io.Reader) error
	// Stderr takes what the command says of errors; nil drops it.
	Stderr io.Writer
}

// Ending is how a command ended.
type Ending struct {
	// Status is its exit status.
	Status int
	// Heard tells that something of the command came back, also where an error says that it was not all.
	Heard bool
	// Told tells that the whole answer came, the status with it: an error is one of stdin.
	Told bool
}

// Call runs a command. ErrMalformed says that the other end is no session; the errors of the streams and of Stdin and Stdout
// are passed on.
func (c *Caller) Call(call Call) (Ending, error) {
	a := &answer{Caller: c, stderr: call.Stderr}
	written := make(chan error, 1)
	c.writing.Go(func() { written <- c.write(call, &a.over) })
	err := call.Stdout(a)
	if err == nil {
		_, err = io.Copy(io.Discard, a)
	}
	if err == nil {
		err = <-written
	}
	return a.Ending, err
}

// write sends the command and its stdin. After an error the command sees a stdin that was cut.
func (c *Caller) write(call Call, over *atomic.Bool) error {
	err := c.feed(call, over)
	if err == nil {
		err = send(c.out, kindEnd, nil)
	}
	if err != nil {
		return errors.Join(err, c.out.Close())
	}
	return nil
}

func (c *Caller) feed(call Call, over *atomic.Bool) error {
	words, err := json.Marshal(call.Words)
	if err != nil {
		return err
	}
	if err := send(c.out, kindWords, words); err != nil || call.Stdin == nil {
		return err
	}
	err = call.Stdin(until{stream{c.out, kindStdin}, over})
	if errors.Is(err, io.EOF) && over.Load() {
		return nil
	}
	return err
}

// until is stdin as long as the command runs.
type until struct {
	stream
	over *atomic.Bool
}

// Write implements io.Writer.
func (u until) Write(p []byte) (int, error) {
	if u.over.Load() {
		return 0, io.EOF
	}
	return u.stream.Write(p)
}

// answer is the stdout of a command, and takes the rest of its answer aside.
type answer struct {
	*Caller
	Ending
	stderr io.Writer
	// over tells that the command has ended.
	over atomic.Bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	for !a.over.Load() && a.in.left == 0 {
		if err := a.take(); err != nil {
			return 0, err
		}
	}
	if a.over.Load() {
		return 0, io.EOF
	}
	return a.in.Read(p)
}

// take reads a frame, unless it is one of stdout.
func (a *answer) take() error {
	if err := a.greeted(); err != nil {
		return err
	}
	k, err := a.in.next()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	a.Heard = true
	switch k {
	case kindStdout:
		return nil
	case kindStderr:
		to := a.stderr
		if to == nil {
			to = io.Discard
		}
		_, err := io.Copy(to, &a.in)
		return err
	case kindStatus:
		return a.end()
	case kindHello, kindWords, kindStdin, kindEnd:
	}
	return fmt.Errorf("%w: %q in an answer", ErrMalformed, k)
}

func (a *answer) end() error {
	data, err := a.in.all()
	if err != nil {
		return err
	}
	if a.Status, err = strconv.Atoi(string(data)); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	a.Told = true
	a.over.Store(true)
	return nil
}

// greeted reads the hello.
func (a *answer) greeted() error {
	if a.heard {
		return nil
	}
	k, err := a.in.next()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	data, err := a.in.all()
	if k != kindHello || err != nil || string(data) != hello {
		return fmt.Errorf("%w: it does not say %q", ErrMalformed, hello)
	}
	a.heard = true
	return nil
}
