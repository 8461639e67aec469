package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
)

// ask is one run of the agent.
type ask struct {
	words  []string
	stdin  func(context.Context, io.Writer) error
	stdout output
}

// output is what the agent prints.
type output interface {
	// read reads it to the end.
	read(from io.Reader) error
	// answered reports whether the agent printed anything: what a shell prints does not count.
	answered() bool
}

// Exit statuses without output that are the agent's own. Any other is from a shell that does not find the program or cannot
// start it: PowerShell and cmd /c exit with 1, cmd with 9009, sh with 126 or 127.
var ownStatuses = []int{NoStatus, 0, 2, 4, 5, 130}

// powerShellStatus is what PowerShell makes of every status but 0.
const powerShellStatus = 1

// run runs the agent. If the host lacks it, run uploads it and tries again, unless the client only observes. If the agent is
// there and cannot read its stdin, run sends text from then on.
func (a *Agent) run(ctx context.Context, q ask) error {
	c, err := a.command(q)
	if err != nil {
		return err
	}
	if err = a.client.transport.Run(ctx, a.target, c); !unanswered(q, err) {
		return err
	}
	uploaded, failed := a.provide(ctx)
	if uploaded {
		failed = a.check(ctx)
	}
	if failed != nil {
		return failed
	}
	if uploaded {
		if err = a.client.transport.Run(ctx, a.target, c); !unanswered(q, err) {
			return err
		}
	}
	if q.stdin == nil || a.needsText() || statusOf(err) != powerShellStatus {
		return err
	}
	a.client.text.Store(a.target, true)
	if c, err = a.command(q); err != nil {
		return err
	}
	return a.client.transport.Run(ctx, a.target, c)
}

// command returns the command that asks.
func (a *Agent) command(q ask) (Command, error) {
	c := Command{Name: strings.Join(q.words, " "), Stdin: q.stdin, Stdout: q.stdout.read}
	words := q.words
	if q.stdin != nil && a.needsText() {
		words, c.Stdin = append(slices.Clone(words), textFlag), asText(q.stdin)
	}
	var err error
	c.Line, err = commandLine(a.client.program.Path, words)
	return c, err
}

// needsText reports whether the host's shell damages other input than text.
func (a *Agent) needsText() bool {
	_, text := a.client.text.Load(a.target)
	return text
}

func unanswered(q ask, err error) bool {
	return err != nil && !q.stdout.answered() && !slices.Contains(ownStatuses, statusOf(err))
}

// statusOf returns the exit status of a failed command, NoStatus for any other error.
func statusOf(err error) int {
	var command *CommandError
	if errors.As(err, &command) {
		return command.Status
	}
	return NoStatus
}

// check asks the agent that was just uploaded for its version: its digest must be the one of the client's program.
func (a *Agent) check(ctx context.Context) error {
	var out answer
	c, err := a.command(ask{words: []string{wordVersion}, stdout: &out})
	if err != nil {
		return err
	}
	if err = a.client.transport.Run(ctx, a.target, c); err == nil {
		err = a.checkVersion(out.data)
	}
	if err != nil {
		return a.programError(err, "check whether a scanner or a policy on the host blocks the program; delete the file and run it again")
	}
	return nil
}

// checkVersion reads what `wmco-node version` prints.
func (a *Agent) checkVersion(data []byte) error {
	var v struct {
		// Digest is of the agent's own file.
		Digest bundle.Digest `json:"digest"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return a.badAnswer(wordVersion, data, err)
	}
	if v.Digest != a.client.program.Digest {
		return fmt.Errorf("it reports the digest %s, expected %s", v.Digest.Short(), a.client.program.Digest.Short())
	}
	return nil
}

// A command line must mean the same to cmd.exe, PowerShell and sh, whichever the host's SSH server starts. So it is a path
// and words without characters that are special to any of them. Backslashes in the path are doubled: sh makes one of two, and
// Windows reads two inside a path as one. Forward slashes work in sh and PowerShell, but cmd.exe ends the name of a command at
// them.
var (
	// safePath is a path that needs nothing but doubled backslashes.
	safePath = regexp.MustCompile(`^[A-Z]:(\\[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)
	// safeWord is an argument that needs nothing.
	safeWord = regexp.MustCompile(`^(-{0,2}[A-Za-z0-9][A-Za-z0-9._:-]*)$`)
)

// commandLine returns the line that runs the program at path with the words.
func commandLine(path string, words []string) (string, error) {
	if err := bundle.CheckPath(path); err != nil {
		return "", err
	}
	if !safePath.MatchString(path) {
		return "", fmt.Errorf("%q is not safe in every shell: only letters, digits, dots, dashes and underscores are", path)
	}
	line := strings.ReplaceAll(path, `\`, `\\`)
	for _, word := range words {
		if !safeWord.MatchString(word) {
			return "", fmt.Errorf("the argument %q is not safe in every shell", word)
		}
		line += " " + word
	}
	return line, nil
}

// PowerShell passes stdin on to programs as lines of text, in the host's code page, which damages an archive. An agent behind it
// reads base64 instead, after textFlag on the command line.
const textFlag = "--text"

// textLine is the number of bytes that go into one line of text.
const textLine = 3 << 10

// asText encodes stdin as lines of base64.
func asText(stdin func(context.Context, io.Writer) error) func(context.Context, io.Writer) error {
	return func(ctx context.Context, to io.Writer) error {
		lines := &lineWriter{to: to}
		encoder := base64.NewEncoder(base64.StdEncoding, lines)
		if err := stdin(ctx, encoder); err != nil {
			return err
		}
		return errors.Join(encoder.Close(), lines.end())
	}
}

// lineWriter splits what is written into lines.
type lineWriter struct {
	to   io.Writer
	line []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	const full = textLine / 3 * 4
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), full-len(w.line))
		w.line, p = append(w.line, p[:take]...), p[take:]
		if len(w.line) == full {
			if err := w.end(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// end writes the line, if there is one.
func (w *lineWriter) end() error {
	if len(w.line) == 0 {
		return nil
	}
	_, err := w.to.Write(append(w.line, '\n'))
	w.line = w.line[:0]
	return err
}
