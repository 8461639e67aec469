package sshd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
