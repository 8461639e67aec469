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
	"time"

	"wmco/applier/ownfile"
	"wmco/bundle"
)

// ask is one run of the agent.
type ask struct {
	words []string
	// works reports whether the host has something to do: then it needs a place. Changes reports whether that changes
	// the host.
	works, changes bool
	stdin          func(context.Context, io.Writer) error
	stdout         output
	// limit is how long it may take; waits is how much of it may be silence.
	limit, waits time.Duration
}

// output is what the agent prints.
type output interface {
	// read reads it to the end.
	read(from io.Reader) error
	// answered reports whether the agent printed anything: what a shell prints does not count.
	answered() bool
}

// Exit statuses without output that are the agent's own. Any other is from a shell that does not find the program or
// cannot start it, or from an agent that finds its own file damaged: PowerShell and cmd /c exit with 1, cmd with 9009
// or the error of CreateProcess (193 and 216 for an invalid program), sh with 126 or 127, the agent with 125, a crash
// with its NTSTATUS.
var ownStatuses = []int{NoStatus, 0, 2, 4, 5, 130}

// powerShellStatus is what PowerShell makes of every status but 0.
const powerShellStatus = 1

// runChecked runs the agent that is on the host. It checks its own file before it does anything (applier/ownfile), so
// nothing is read back first. Where it gives no answer, run reads it back, and uploads it again if it is missing or
// differs, unless the client only observes. If the agent is right and cannot read its stdin, run sends text from then
// on.
func (a *Agent) runChecked(ctx context.Context, q ask) error {
	if err := beginTurn(ctx); err != nil {
		return err
	}
	if q.works {
		if err := TakePlace(ctx); err != nil {
			return err
		}
	}
	if a.host.doubtful.Load() {
		if _, err := a.placeOnce(ctx, a.host.placed.Load()); err != nil {
			return err
		}
	}
	placed := a.host.placed.Load()
	err := a.runInstalled(ctx, q)
	if !a.isUnanswered(q, err) {
		return err
	}
	// What has answered before is there, as far as is known: a shell that damages stdin is likelier.
	if a.host.proven.Load() && a.needsText(q, err) {
		if again := a.startText(ctx, q); !a.isUnanswered(q, again) {
			return again
		}
	}
	uploaded, failed := a.placeOnce(ctx, placed)
	if failed != nil {
		return failed
	}
	if uploaded {
		if err = a.runInstalled(ctx, q); !a.isUnanswered(q, err) {
			return err
		}
	}
	if a.needsText(q, err) {
		return a.startText(ctx, q)
	}
	return err
}

// needsText reports whether the shell of the host may have damaged stdin.
func (a *Agent) needsText(q ask, err error) bool {
	return q.stdin != nil && !a.host.text.Load() && statusOf(err) == powerShellStatus
}

// startText runs the agent with stdin as text. That stays so if it answers.
func (a *Agent) startText(ctx context.Context, q ask) error {
	a.host.text.Store(true)
	err := a.runInstalled(ctx, q)
	if a.isUnanswered(q, err) {
		a.host.text.Store(false)
	}
	return err
}

// placeOnce makes sure that the host has the program, once for all callers that found the same. It reports whether the
// program was uploaded since.
func (a *Agent) placeOnce(ctx context.Context, before int64) (uploaded bool, err error) {
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case a.host.placing <- struct{}{}:
	}
	defer func() { <-a.host.placing }()
	if a.host.placed.Load() != before {
		return true, nil
	}
	if uploaded, err = a.placeProgram(ctx); err != nil {
		return false, err
	}
	a.host.doubtful.Store(false)
	a.host.proven.Store(true)
	if uploaded {
		a.host.placed.Add(1)
	}
	return uploaded, nil
}

// errMayNot is of a client that must not change hosts now.
var errMayNot = errors.New("nothing more is changed")

// checkMayChange returns an error if the client must not change the host now.
func (a *Agent) checkMayChange(ctx context.Context) error {
	if a.client.mayChange == nil {
		return nil
	}
	if err := a.client.mayChange(ctx); err != nil {
		return fmt.Errorf("%w on %s: %w", errMayNot, a.target, err)
	}
	return nil
}

// runInstalled runs the agent that is on the host.
func (a *Agent) runInstalled(ctx context.Context, q ask) error {
	c, err := a.buildCommand(ctx, q)
	if err == nil && q.changes {
		err = a.checkMayChange(ctx)
	}
	if err != nil {
		return err
	}
	limited, cancel := withLimit(ctx, q.limit, "the command")
	defer cancel()
	err = a.client.transport.Run(limited, a.target, c)
	answered := err == nil || q.stdout.answered()
	switch {
	case answered:
		a.host.proven.Store(true)
	case errors.As(err, new(*LimitError)) && !a.host.proven.Load():
		a.host.doubtful.Store(true)
	}
	if answered || errors.As(err, new(*CommandError)) {
		noteProgress(ctx)
	}
	if errors.Is(err, errTooMuch) {
		return a.badAnswer(c.Name, nil, err)
	}
	return err
}

// buildCommand returns the command that asks.
func (a *Agent) buildCommand(ctx context.Context, q ask) (Command, error) {
	stdin := reportProgress(q.stdin, func() { noteProgress(ctx) })
	c := Command{Name: strings.Join(q.words, " "), Stdin: stdin, Stdout: q.stdout.read, Waits: q.waits}
	words := q.words
	// A shell may damage other input than text.
	if stdin != nil && a.host.text.Load() {
		words, c.Stdin = append(slices.Clone(words), textFlag), encodeStdinAsText(stdin)
	}
	if sum := a.client.sum.Load(); sum != nil {
		words = append(slices.Clone(words), ownfile.Flag, *sum)
	}
	var err error
	c.Line, err = commandLine(a.client.program.Path, words)
	return c, err
}

// isUnanswered reports whether a command ended without an answer of the agent, so that it may be missing or damaged.
// The statuses of the agent count only if it was proven: a damaged program may end with any.
func (a *Agent) isUnanswered(q ask, err error) bool {
	var ended *CommandError
	if !errors.As(err, &ended) || q.stdout.answered() {
		return false
	}
	return !a.host.proven.Load() || !slices.Contains(ownStatuses, ended.Status)
}

// statusOf returns the exit status of a failed command, NoStatus for any other error.
func statusOf(err error) int {
	var command *CommandError
	if errors.As(err, &command) {
		return command.Status
	}
	return NoStatus
}

// verifyUploaded asks the agent that was just uploaded for its version, and thereby whether it works: its digest must
// be the one of the client's program.
func (a *Agent) verifyUploaded(ctx context.Context) error {
	var out answer
	err := a.runInstalled(ctx, ask{words: []string{wordVersion}, stdout: &out, limit: a.client.limits.Question})
	if err == nil {
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

// A command line must mean the same to cmd.exe, PowerShell and sh, whichever the host's SSH server starts. So it is a
// path and words without characters that are special to any of them. Backslashes in the path are doubled: sh makes one
// of two, and Windows reads two inside a path as one. Forward slashes work in sh and PowerShell, but cmd.exe ends the
// name of a command at them.
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

// PowerShell passes stdin on to programs as lines of text, in the host's code page, which damages an archive. An agent
// behind it reads base64 instead, after textFlag on the command line.
const textFlag = "--text"

// textLine is the number of bytes that go into one line of text.
const textLine = 3 << 10

// encodeStdinAsText encodes stdin as lines of base64.
func encodeStdinAsText(stdin func(context.Context, io.Writer) error) func(context.Context, io.Writer) error {
	return func(ctx context.Context, to io.Writer) error {
		lines := &lineWriter{to: to}
		encoder := base64.NewEncoder(base64.StdEncoding, lines)
		if err := stdin(ctx, encoder); err != nil {
			return err
		}
		return errors.Join(encoder.Close(), lines.writeRest())
	}
}

// lineWriter splits its input into lines.
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
			if err := w.writeRest(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// writeRest writes the line, if there is one.
func (w *lineWriter) writeRest() error {
	if len(w.line) == 0 {
		return nil
	}
	_, err := w.to.Write(append(w.line, '\n'))
	w.line = w.line[:0]
	return err
}
