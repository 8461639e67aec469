package testenv

import (
	"io"
	"os/exec"
)

// lifeline ends what this program started when the program ends before its tests do: interrupted, killed, or out of
// time. A shell waits at the other end of a pipe, which closes with the program.
type lifeline struct {
	shell *exec.Cmd
	pipe  io.Closer
}

// release lets go. Nothing is ended.
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
