package sshd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listDescendants returns the descendants of a process.
func listDescendants(of int) []int {
	parents := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent; a name may hold blanks.
		text := string(data)
		var state string
		var parent int
		if _, err := fmt.Sscan(text[strings.LastIndexByte(text, ')')+1:], &state, &parent); err != nil {
			continue
		}
		pid, err := strconv.Atoi(text[:strings.IndexByte(text, ' ')])
		if err != nil {
			continue
		}
		parents[parent] = append(parents[parent], pid)
	}
	return descendantsOf(of, parents)
}

func descendantsOf(of int, parents map[int][]int) []int {
	var all []int
	for _, pid := range parents[of] {
		all = append(append(all, pid), descendantsOf(pid, parents)...)
	}
	return all
}

// Sessions returns the number of processes of the server's connections.
func (s *Server) Sessions() int { return len(listDescendants(s.process.Process.Pid)) }

// EndPrograms kills the programs of the host that still run without a session, such as a run that goes on after its
// connection was lost, and waits until they have ended: nothing writes into the folder of the host any longer. It is
// called after Stop.
func (s *Server) EndPrograms() {
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		running := programsBelow(s.Root)
		if len(running) == 0 {
			return
		}
		for _, pid := range running {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// programsBelow returns the processes whose program is in a folder. One that has ended has none.
func programsBelow(folder string) []int {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil
	}
	var all []int
	for _, link := range links {
		program, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(program, folder+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
