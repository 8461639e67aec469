package sshhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// call is one run of the node program.
type call struct {
	words  []string
	stdin  func(context.Context, io.Writer) error
	stdout func(io.Reader) error
	// answered tells whether anything was printed.
	answered func() bool
}

// ownStatuses are those that the node program ends with when it cannot answer. Any other, with nothing printed, is the
// shell's, which finds no such program or cannot start it: PowerShell and cmd /c say 1, cmd 9009, sh 126 or 127.
var ownStatuses = []int{NoStatus, 0, 2, 4, 5, 130}

// powerShellStatus is what PowerShell makes of all statuses but 0.
const powerShellStatus = 1

// call runs the node program. Where there is none, it is put onto the machine. Where it is there and cannot read what it is
// sent, it is sent text.
func (m *Machine) call(ctx context.Context, c call) error {
	err := m.exec(ctx, c)
	if !unanswered(c, err) {
		return err
	}
	placed, failed := m.place(ctx)
	if failed != nil {
		return failed
	}
	if placed {
		if failed := m.check(ctx); failed != nil {
			return failed
		}
		if err = m.exec(ctx, c); !unanswered(c, err) {
			return err
		}
	}
	if c.stdin == nil || m.client.text(m.target) || statusOf(err) != powerShellStatus {
		return err
	}
	m.client.needsText(m.target)
	return m.exec(ctx, c)
}

func unanswered(c call, err error) bool {
	return err != nil && !c.answered() && !slices.Contains(ownStatuses, statusOf(err))
}

// statusOf is the status of a command that ended badly, NoStatus for any other error.
func statusOf(err error) int {
	var command *CommandError
	if errors.As(err, &command) {
		return command.Status
	}
	return NoStatus
}

// check runs the program that was just put there: it must be the one that we have.
func (m *Machine) check(ctx context.Context) error {
	var data []byte
	read := func(from io.Reader) (err error) {
		data, err = readAnswer(from)
		return err
	}
	err := m.exec(ctx, call{words: []string{wordVersion}, stdout: read})
	var v Version
	if err == nil {
		v, err = m.decodeVersion(data)
	}
	if err == nil && v.Digest != m.client.program.Digest {
		err = fmt.Errorf("it says that its digest is %s, ours is %s", v.Digest.Short(), m.client.program.Digest.Short())
	}
	if err != nil {
		return &ProgramError{
			Target: m.target, Path: m.client.program.Path, Err: err,
			Todo: "see whether a scanner or a policy of the machine keeps the program from running; remove the file and run it again",
		}
	}
	return nil
}

// exec runs the node program once. Where a kept connection is found dead before the command had any stdin, a new one takes
// its place.
func (m *Machine) exec(ctx context.Context, c call) error {
	words, stdin := c.words, c.stdin
	if stdin != nil && m.client.text(m.target) {
		words, stdin = append(slices.Clone(words), textFlag), asText(stdin)
	}
	line, err := commandLine(m.client.program.Path, words)
	if err != nil {
		return err
	}
	for {
		conn, channel, err := m.channel(ctx)
		if err != nil {
			return err
		}
		err = conn.run(ctx, channel, command{line: line, name: nameOf(c.words), stdin: stdin, stdout: c.stdout})
		m.client.pool.put(conn)
		var lost *InterruptedError
		if !channel.kept || !errors.As(err, &lost) || !lost.unheard || ctx.Err() != nil {
			return err
		}
	}
}

// channel opens a channel, on a kept connection if there is one. A kept one that turns out to be dead is replaced: nothing
// has run on it.
func (m *Machine) channel(ctx context.Context) (*conn, opened, error) {
	for {
		c, kept, err := m.client.pool.get(ctx, m.target)
		if err != nil {
			return nil, opened{}, err
		}
		release := c.guard(ctx)
		o, err := c.channel()
		release()
		if err == nil && ctx.Err() == nil {
			o.kept = kept
			return c, o, nil
		}
		_ = c.close() // its channel cannot be opened
		if ctx.Err() != nil {
			return nil, opened{}, context.Cause(ctx)
		}
		if !kept {
			return nil, opened{}, err
		}
	}
}
