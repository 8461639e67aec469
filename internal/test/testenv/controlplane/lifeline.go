package controlplane

import (
	"io"
	"os/exec"
)

// lifeline ends what this program started if the program ends before its tests do: interrupted, killed, or after a
// timeout. A shell reads from a pipe, which is closed when the program ends.
type lifeline struct {
	shell *exec.Cmd
	pipe  io.Closer
}

// release stops the shell. It ends nothing else.
func (l *lifeline) release() error {
	if l == nil {
		return nil
	}
	if err := l.shell.Process.Kill(); err != nil {
		return err
	}
	_ = l.shell.Wait() // it was killed
	return nil
}
