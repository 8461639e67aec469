package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// reaper waits until the pipe is closed. It kills every process whose command line names the folder, twice, as one may
// have been about to start, and removes the folder.
const reaper = `read -r _
for _ in 1 2; do
	for p in /proc/[0-9]*; do
		[ "${p#/proc/}" = $$ ] || ! grep -qsF "$1" "$p/cmdline" || kill -KILL "${p#/proc/}"
	done
	sleep 1
done 2>/dev/null
rm -rf "$1"`

// newLifeline is for the processes that this program will start, each of which has the folder in its arguments.
func newLifeline(folder string) (_ *lifeline, err error) {
	l := &lifeline{shell: exec.CommandContext(context.Background(), "sh", "-c", reaper, "lifeline", folder)}
	// A group of its own: an interrupt on the terminal reaches only this program.
	l.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.pipe, err = l.shell.StdinPipe(); err != nil {
		return nil, err
	}
	return l, l.shell.Start()
}

// names are the programs.
var names = []string{Etcd, APIServer, ControllerManager, Scheduler}

// commLength is how much of a program's name the kernel keeps (man 5 proc_pid_stat).
const commLength = 15

// childProcesses returns the processes of these programs that a process has started.
func childProcesses(of int, programs []string) ([]string, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended since
		}
		var pid, name, state, parent string
		if _, err := fmt.Sscan(string(text), &pid, &name, &state, &parent); err != nil {
			continue // its name has a space: not one of the programs
		}
		if parent == strconv.Itoa(of) && slices.ContainsFunc(programs, func(p string) bool { return name == "("+p[:min(len(p), commLength)]+")" }) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// kill ends the processes of a program that this one has started. They learn nothing before.
func kill(program string) error { return signal(program, syscall.SIGKILL) }

// signal is for the processes of a program that this one has started.
func signal(program string, what syscall.Signal) error {
	pids, err := childProcesses(os.Getpid(), []string{program})
	if err != nil {
		return err
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, what); err != nil {
			return err
		}
	}
	return nil
}
