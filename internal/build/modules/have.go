package modules

import (
	"bufio"
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

// Download downloads the modules that the packages import and that are not in the module cache. The error is a
// *RefusedError if a module cannot be downloaded.
func Download(ctx context.Context, s Selection) error {
	args := []string{"list", "-deps", "-f", "{{.ImportPath}}"}
	if s.Tests {
		args = append(args, "-test")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, s.Packages...)...)
	cmd.Dir, cmd.Env = s.Dir, append(append(os.Environ(), "GOWORK=off"), s.Env...)
	pipe, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	var stderr strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if s.Progress != nil && strings.HasPrefix(lines.Text(), "go: downloading ") {
			fmt.Fprintln(s.Progress, lines.Text())
		}
		fmt.Fprintln(&stderr, lines.Text())
	}
	if err = cmd.Wait(); err == nil {
		return nil
	}
	if refused, ok := findRefused(stderr.String()); ok {
		return refused
	}
	return fmt.Errorf("running go list in %q: %w", s.Dir, errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
}
