package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Selection is the part of a module that is needed.
type Selection struct {
	// Dir is the folder of its go.mod.
	Dir string
	// Packages are patterns of the go command. `tool` means every tool of the go.mod.
	Packages []string
	// Tests reports whether the imports of the tests are needed too.
	Tests bool
	// Env is added to the environment of the go command, such as GOOS=windows.
	Env []string
	// Progress, if not nil, gets a line for each download.
	Progress io.Writer
}

// Have downloads the modules that the packages import and that are not in the module cache. The error is a *RefusedError if a
// module cannot be downloaded.
func Have(ctx context.Context, s Selection) error {
	args := []string{"go", "list", "-deps", "-f", "{{.ImportPath}}"}
	if s.Tests {
		args = append(args, "-test")
	}
	_, err := run(ctx, command{dir: s.Dir, env: append([]string{"GOWORK=off"}, s.Env...), args: append(args, s.Packages...), progress: s.Progress})
	return err
}

// goCommand runs the go command in a folder and returns its stdout. The error has its stderr, or is a *RefusedError.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	return run(ctx, command{dir: dir, env: append([]string{"GOWORK=off"}, env...), args: append([]string{"go"}, args...)})
}

type command struct {
	dir       string
	env, args []string
	progress  io.Writer
}

// downloads keeps the stderr of the go command and forwards its lines about downloads.
type downloads struct {
	all, line []byte
	progress  io.Writer
}

// Write implements io.Writer.
func (d *downloads) Write(p []byte) (int, error) {
	for _, b := range p {
		d.line = append(d.line, b)
		if b != '\n' {
			continue
		}
		if d.progress != nil && bytes.HasPrefix(d.line, []byte("go: downloading ")) {
			_, _ = d.progress.Write(d.line) // a lost line of progress is harmless
		}
		d.line = d.line[:0]
	}
	d.all = append(d.all, p...)
	return len(p), nil
}

func run(ctx context.Context, c command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	stderr := downloads{progress: c.progress}
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if refused, ok := findRefused(string(stderr.all)); ok {
		return out, refused
	}
	return out, fmt.Errorf("running %s %s in %q: %w", c.args[0], c.args[1], c.dir, errors.Join(err, errors.New(strings.TrimSpace(string(stderr.all)))))
}
