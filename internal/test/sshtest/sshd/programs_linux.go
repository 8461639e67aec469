package sshd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs are what servers need, built once per process.
type Programs struct {
	folder  string
	simhost string
	// sshd is empty if there is none.
	sshd string
}

// simhostPackage is the program that servers run in place of a shell.
const simhostPackage = "wmco/internal/test/sshtest/simhost"

// builtVariable is the environment variable with the folder of programs that were built for all packages (make
// test-programs).
const builtVariable = "WMCO_TEST_PROGRAMS"

// Build builds the programs into a folder that Remove removes.
func Build(ctx context.Context) (Programs, error) {
	folder, err := os.MkdirTemp("", "sshtest-")
	if err != nil {
		return Programs{}, err
	}
	p := Programs{folder: folder}
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if _, err := os.Stat(path); err == nil {
			p.sshd = path
		}
	}
	p.simhost, err = p.Go(ctx, simhostPackage)
	return p, err
}

// Remove removes what was built.
func (p Programs) Remove() error { return os.RemoveAll(p.folder) }

// Go builds a program of this module, unless it was built for all packages, and returns its path.
func (p Programs) Go(ctx context.Context, pkg string, flags ...string) (string, error) {
	if folder := os.Getenv(builtVariable); folder != "" {
		built := filepath.Join(folder, filepath.Base(pkg))
		if _, err := os.Stat(built); err == nil {
			return built, nil
		}
	}
	out := filepath.Join(p.folder, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", out}, flags...), pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building %s: %s", pkg, text), err)
	}
	return out, nil
}
