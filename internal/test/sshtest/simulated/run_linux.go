package simulated

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// notFound is what shells report for a program that does not exist.
var notFound = map[Shell]struct {
	status int
	text   string
}{
	ShellCmd:        {1, "'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"},
	ShellPowerShell: {1, "#< CLIXML\r\n<Objs><S S=\"Error\">%s : The term is not recognized</S></Objs>"},
	ShellSh:         {127, "sh: %s: not found\n"},
}

// Run runs a command line as the host's shell does. It returns the exit status.
func (m Machine) Run(line string) (int, error) {
	if err := m.noteStart(line); err != nil {
		return 0, err
	}
	if m.Settings.Silent == SilentAlways || m.Settings.Silent == SilentApply && slices.Contains(strings.Fields(line), string(SilentApply)) {
		hangForever()
	}
	if m.Settings.Shell == ShellPlain {
		return 0, syscall.Exec("/bin/sh", []string{"sh", "-c", line}, os.Environ())
	}
	fmt.Print(m.Settings.Noise)
	words, err := SplitWords(m.Settings.Shell, line)
	if err != nil {
		return 1, err
	}
	program, err := m.Local(words[0])
	if err != nil {
		return 1, err
	}
	if info, _ := os.Stat(program); info == nil {
		n := notFound[m.Settings.Shell]
		fmt.Fprintf(os.Stderr, n.text, words[0])
		return n.status, nil
	}
	// Windows has no such mode.
	if err := os.Chmod(program, 0o700); err != nil {
		return 1, err
	}
	return m.exec(program, words)
}

// exec replaces this process by the program, unless the shell changes its streams.
func (m Machine) exec(program string, words []string) (int, error) {
	environment := append(os.Environ(), append(m.Settings.Environment, RootVariable+"="+m.Folder)...)
	if m.Settings.Shell != ShellPowerShell {
		return 1, retryBusy(func() error { return syscall.Exec(program, words, environment) })
	}
	cmd := exec.Command(program, words[1:]...) //nolint:noctx // it ends with its SSH session
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, os.Stdout, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1, err
	}
	go asLines(stdin, os.Stdin)
	return powerShellStatus(cmd.Run())
}

// powerShellStatus returns 1 for every status but 0, as powershell -c does.
func powerShellStatus(err error) (int, error) {
	switch exit := (*exec.ExitError)(nil); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return 1, nil
	}
	return 1, err
}

// asLines passes stdin on as PowerShell does: as lines of text, with question marks for bytes that are not text.
func asLines(to io.WriteCloser, from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 || err == nil {
			if _, err := io.WriteString(to, strings.ToValidUTF8(string(line), "?")+"\r\n"); err != nil {
				return
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// retryBusy starts a program that another process may still have open for writing (a fork of its writer).
func retryBusy(start func() error) error {
	var err error
	for range 100 {
		if err = start(); !errors.Is(err, syscall.ETXTBSY) {
			return err
		}
	}
	return err
}
