package testrun

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// scratch is the folder for the temporary files of the tests.
type scratch string

// newScratch makes it, empty. Its name is the same each time: go test runs a test again, instead of taking its result
// from the cache, if TMPDIR changed. The name is short: the path of a Unix socket has 107 bytes at most (unix(7)).
func newScratch(logs string) (scratch, error) {
	path, err := filepath.Abs(logs)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("wmco-%x", sha256.Sum256([]byte(path)))[:len("wmco-")+6])
	return scratch(dir), errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755))
}

// environment is that of the tests. With a heap that may grow to five times what is in use (runtime, GOGC), they and the compiler take a tenth less of the
// processors. Tests that assert the memory of a program set it back.
func (s scratch) environment() []string {
	return append(append([]string{"GOGC=400"}, os.Environ()...), "TMPDIR="+string(s))
}

// processesEnd is how long processes may need to end after the test that started them.
const processesEnd = 10 * time.Second

// removeLeft ends the processes that the tests have left, removes their files, and returns both.
func (s scratch) removeLeft() ([]string, error) {
	running := s.processes()
	for deadline := time.Now().Add(processesEnd); len(running) > 0 && time.Now().Before(deadline); running = s.processes() {
		time.Sleep(100 * time.Millisecond)
	}
	var left []string
	for _, pid := range running {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		left = append(left, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '})))
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
	files, err := os.ReadDir(string(s))
	for _, f := range files {
		left = append(left, filepath.Join(string(s), f.Name()))
	}
	return left, errors.Join(err, os.RemoveAll(string(s)))
}

// processes returns those whose environment names the folder, as TMPDIR or as that of a simulated machine. Without
// /proc, there are none.
func (s scratch) processes() []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bytes.Contains(environment, []byte(s)) {
			found = append(found, pid)
		}
	}
	return found
}
