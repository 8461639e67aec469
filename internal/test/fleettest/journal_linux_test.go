package fleettest

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
)

// journal keeps the last lines that operators and machines have logged: a test that fails shows them.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// journalSize is how many lines are kept, shownLines how many of them a failed test shows.
const (
	journalSize = 2000
	shownLines  = 40
)

var recent journal

// Write implements io.Writer. It gets a line at a time.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == journalSize {
		j.lines = append(j.lines[:0], j.lines[journalSize/2:]...)
	}
	j.lines = append(j.lines, string(bytes.TrimSpace(line)))
	return len(line), nil
}

// String returns the last lines of operators, and the warnings of machines.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var shown []string
	for i := len(j.lines) - 1; i >= 0 && len(shown) < shownLines; i-- {
		if line := j.lines[i]; !strings.Contains(line, "level=INFO") || strings.Contains(line, " logger=operator") {
			shown = append([]string{line}, shown...)
		}
	}
	return strings.Join(shown, "\n")
}

// logs is what programs log to. It is shown with -v, and the end of it when a test fails.
func logs() *slog.Logger {
	to := io.Writer(&recent)
	if testing.Verbose() {
		to = io.MultiWriter(os.Stderr, &recent)
	}
	return slog.New(slog.NewTextHandler(to, nil))
}
