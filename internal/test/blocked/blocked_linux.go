// Package blocked waits until a process waits: a test that interrupts it then interrupts neither its beginning nor its
// end, on a busy computer too.
package blocked

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limit is for a process that never waits.
const limit = 5 * time.Minute

// Reading waits until a thread of the process waits for something to read from the file descriptor.
func Reading(t testing.TB, pid, descriptor int) {
	t.Helper()
	await(t, pid, func(c call) bool { return c.number == syscall.SYS_READ && c.first == uint64(descriptor) }) //nolint:gosec // not negative
}

// Opening waits until a thread of the process waits for the other end of a FIFO.
func Opening(t testing.TB, pid int, fifo string) {
	t.Helper()
	await(t, pid, func(c call) bool { return c.number == syscall.SYS_OPENAT && textAt(pid, c.second, len(fifo)) == fifo })
}

// call is a system call in which a thread sleeps, with its first arguments (proc_pid_syscall(5)).
type call struct {
	number        int
	first, second uint64
}

// await waits until a thread sleeps in a call that fits.
func await(t testing.TB, pid int, fits func(call) bool) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			var c call
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // the thread has ended
			}
			if n, _ := fmt.Sscanf(string(text), "%d 0x%x 0x%x", &c.number, &c.first, &c.second); n == 3 && fits(c) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("process %d does not wait after %s", pid, limit)
		}
	}
}

// textAt returns a string in the memory of a process; empty if it cannot be read.
func textAt(pid int, address uint64, length int) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return ""
	}
	defer memory.Close() //nolint:errcheck // it is read
	data := make([]byte, length+1)
	if _, err := memory.ReadAt(data, int64(address)); err != nil || !bytes.HasSuffix(data, []byte{0}) { //nolint:gosec // an address of a user's memory
		return ""
	}
	return strings.TrimSuffix(string(data), "\x00")
}
