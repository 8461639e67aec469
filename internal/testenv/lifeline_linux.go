package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// reaper waits for the pipe to close. Its first argument is a folder to remove, the others are processes to kill.
const reaper = `read -r _; folder=$1; shift; kill -KILL "$@"; sleep 1; rm -rf "$folder"`

// newLifeline watches over the processes that this program has started so far, and the folder that they write into.
func newLifeline(folder string) (*lifeline, error) {
	pids, err := children(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("finding what was started: %w", err)
	}
	l := &lifeline{shell: exec.CommandContext(context.Background(), "sh", append([]string{"-c", reaper, "lifeline", folder}, pids...)...)}
	// A group of its own: an interrupt on the terminal reaches only this program.
	l.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.pipe, err = l.shell.StdinPipe(); err != nil {
		return nil, err
	}
	return l, l.shell.Start()
}

// children are the programs that a process has started through an Environment.
func children(of int) ([]string, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended meanwhile
		}
		var pid, name, state, parent string
		if _, err := fmt.Sscan(string(text), &pid, &name, &state, &parent); err != nil {
			continue // its name is not one of ours
		}
		if parent == strconv.Itoa(of) && (name == "("+etcd+")" || name == "("+apiServer+")") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
