package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Selection is what of a module is needed.
type Selection struct {
	// Dir is the folder of its go.mod.
	Dir string
	// Packages are patterns of the go command; `tool` is every tool of the go.mod.
	Packages []string
	// Tests includes what the tests of these packages import.
	Tests bool
	// Env is added to the environment of the go command, such as GOOS=windows.
	Env []string
}

// Have downloads what the packages import, as far as it is not in the module cache. The error is a *RefusedError if a module
// cannot be downloaded.
func Have(ctx context.Context, s Selection) error {
	args := []string{"list", "-deps", "-f", "{{.ImportPath}}"}
	if s.Tests {
		args = append(args, "-test")
	}
	_, err := goCommand(ctx, s.Dir, s.Env, append(args, s.Packages...)...)
	return err
}

// goCommand runs the go command in a folder and returns what it prints. Its messages are in the error, or make it a
// *RefusedError.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	return run(ctx, command{dir: dir, env: append([]string{"GOWORK=off"}, env...), args: append([]string{"go"}, args...)})
}

type command struct {
	dir       string
	env, args []string
}

func run(ctx context.Context, c command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if refused, ok := FindRefused(stderr.String()); ok {
		return out, refused
	}
	return out, fmt.Errorf("running %s %s in %q: %w", c.args[0], c.args[1], c.dir, errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
}
