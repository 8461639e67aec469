package winetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is the limit for a program, on a computer that is busy with other tests.
const patience = 3 * time.Minute

// Command is a Windows program to run.
type Command struct {
	// Path is the path on the drive C:, such as C:\k\kubelet.exe, or the name of a program of Wine.
	Path string
	Args []string
	// Dir is the working folder, in the case of the disk; by default C:\.
	Dir string
	// Env has lines NAME=value, in addition to what Windows sets. PATH, PATHEXT, TEMP, TMP, HOME and the variables with
	// names and folders of users cannot be set.
	Env   []string
	Stdin string
	// Limit is how long it may take; 0 is patience.
	Limit time.Duration
}

// Result is what a program printed and returned. Wine keeps only the lowest eight bits of an exit code.
type Result struct {
	Stdout, Stderr string
	ExitCode       int
}

// Run waits for the end of the program, not of its children.
func (p *Prefix) Run(t testing.TB, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.Limit, patience))
	defer cancel()
	r, err := p.machine.run(ctx, c)
	if err != nil {
		t.Fatalf("running %s: %v", c.Path, err)
	}
	return r
}

// CommandLine returns a Linux command that runs a Windows program with its own streams in dir. The program and its
// arguments are to be appended.
func (p *Prefix) CommandLine(dir string) []string {
	cmd := p.machine.wineCommand(context.Background(), p.machine.job(Command{Dir: dir}))
	return cmd.Args[:len(cmd.Args)-1]
}

func (m *machine) run(ctx context.Context, c Command) (Result, error) {
	return m.runInMachine(ctx, m.job(c))
}

// job returns the Linux program that runs a Windows program.
func (m *machine) job(c Command) job {
	rest := strings.ReplaceAll(strings.TrimPrefix(c.Dir, `C:\`), `\`, "/")
	return job{
		dir:   path.Join(prefix, "drive_c", rest),
		env:   c.Env,
		argv:  append([]string{program, c.Path}, c.Args...),
		stdin: c.Stdin,
	}
}

// wineEnvironment is what Wine needs. With TMPDIR in it, Debian's Wine 10 aborts.
func wineEnvironment() []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + prefix, "USER=nobody", "LC_ALL=C.UTF-8", "XDG_RUNTIME_DIR=/tmp",
		"WINEPREFIX=" + prefix, "WINEARCH=win64", "WINEDEBUG=-all", "WINEDLLOVERRIDES=winemenubuilder.exe,winedbg.exe,mscoree,mshtml=",
	}
}

// job is a Linux program in a machine.
type job struct {
	dir       string
	env, argv []string
	stdin     string
}

// runInMachine runs a Linux program in the machine and waits for its end. The streams are files: the processes that it
// leaves would keep a pipe open.
func (m *machine) runInMachine(ctx context.Context, j job) (Result, error) {
	streams, err := newStreams(j.stdin)
	if err != nil {
		return Result{}, err
	}
	defer streams.close()
	cmd := m.wineCommand(ctx, j)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.in, streams.out, streams.err
	return streams.result(cmd.Run())
}

// wineCommand returns a command that ends with the context: canceling kills its process group, nsenter and the program.
func (m *machine) wineCommand(ctx context.Context, j job) *exec.Cmd {
	args := slices.Concat(
		[]string{"--target", m.id, "--mount", "--pid", "--uts", "--net", "--root", "--setuid", fmt.Sprint(user), "--setgid", fmt.Sprint(user)},
		[]string{"--", "/usr/bin/env", "--ignore-environment", "--chdir", j.dir}, wineEnvironment(), j.env, j.argv,
	)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// streams are the files that a program reads and writes. They have been removed from their folder.
type streams struct{ in, out, err *os.File }

func newStreams(stdin string) (*streams, error) {
	s := &streams{}
	for _, f := range []**os.File{&s.in, &s.out, &s.err} {
		file, err := os.CreateTemp("", "winetest-")
		if err != nil {
			s.close()
			return nil, err
		}
		*f = file
		if err := os.Remove(file.Name()); err != nil {
			s.close()
			return nil, err
		}
	}
	_, err := s.in.WriteString(stdin)
	if err == nil {
		_, err = s.in.Seek(0, io.SeekStart)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *streams) close() {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		_ = f.Close() // nothing is kept
	}
}

// result reads the files after the program has ended.
func (s *streams) result(ended error) (Result, error) {
	stdout, err := all(s.out)
	if err != nil {
		return Result{}, err
	}
	stderr, err := all(s.err)
	if err != nil {
		return Result{}, err
	}
	r := Result{Stdout: stdout, Stderr: stderr}
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.Exited() {
		r.ExitCode = exit.ExitCode()
		return r, nil
	}
	if ended != nil {
		return r, fmt.Errorf("%w; it printed:\n%s%s", ended, stdout, stderr)
	}
	return r, nil
}

// all reads a file without changing its offset, at which a program may still write.
func all(f *os.File) (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	return string(data), err
}
