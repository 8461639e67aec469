package remote

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
	if c.stdin == nil || m.client.knows(m.target).text || statusOf(err) != powerShellStatus {
		return err
	}
	m.client.learns(m.target, func(k *memory) { k.text = true })
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

// exec runs the node program once.
func (m *Machine) exec(ctx context.Context, c call) error {
	cmd := command{words: c.words, stdin: c.stdin, stdout: c.stdout, name: nameOf(c.words)}
	var err error
	if !m.client.knows(m.target).text {
		if cmd.serve, err = commandLine(m.client.program.Path, []string{wordServe}); err != nil {
			return err
		}
	} else if cmd.stdin != nil {
		cmd.words, cmd.stdin = append(slices.Clone(c.words), textFlag), asText(c.stdin)
	}
	if cmd.line, err = commandLine(m.client.program.Path, cmd.words); err != nil {
		return err
	}
	return m.over(ctx, func(conn *conn) error {
		if m.client.knows(m.target).alone {
			cmd.serve = ""
		}
		err := conn.execute(ctx, cmd)
		if errors.Is(err, errNoSession) {
			m.client.learns(m.target, func(k *memory) { k.alone = true })
			cmd.serve = ""
			err = conn.execute(ctx, cmd)
		}
		if cmd.stdin != nil && c.answered() {
			conn.answers++
		}
		return err
	})
}

// over does something over a connection, a kept one if there is. One that turns out to be dead before anything came back is
// replaced, and it is done again: every command can run twice.
func (m *Machine) over(ctx context.Context, do func(*conn) error) error {
	var ran error // where the machine may have done it, nobody may say that it could not be reached
	for {
		c, kept, err := m.client.pool.get(ctx, m.target)
		if err != nil {
			return errors.Join(ran, err)
		}
		err = do(c)
		if unheard(err) {
			_ = c.close() // whatever ails it
		}
		m.client.pool.put(c)
		if !kept || !unheard(err) || ctx.Err() != nil {
			return err
		}
		var lost *InterruptedError
		if errors.As(err, &lost) && lost.mayHaveRun {
			ran = err
		}
	}
}

// unheard tells whether an error says that nothing came back.
func unheard(err error) bool {
	var lost *InterruptedError
	var unreachable *UnreachableError
	return errors.As(err, &lost) && lost.unheard || errors.As(err, &unreachable) && unreachable.Phase == PhaseChannel
}
