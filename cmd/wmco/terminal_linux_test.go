package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal that records what it shows.
type terminal struct {
	// program is the side that a program has as its stdin or stderr.
	program *os.File
	person  *os.File

	mu    sync.Mutex
	shown bytes.Buffer
	gone  chan struct{}
}

// newTerminal opens one of 80 columns, which is closed with the test.
func newTerminal(t *testing.T) *terminal { return newTerminalOf(t, 80) }

// newTerminalOf opens one of so many columns.
func newTerminalOf(t *testing.T, columns uint16) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	fd := int(person.Fd())
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	x := &terminal{program: program, person: person, gone: make(chan struct{})}
	go x.watch()
	t.Cleanup(func() { x.close() })
	return x
}

func (x *terminal) watch() {
	defer close(x.gone)
	buffer := make([]byte, 4<<10)
	for {
		n, err := x.person.Read(buffer)
		x.mu.Lock()
		x.shown.Write(buffer[:n])
		x.mu.Unlock()
		if err != nil {
			return // the other side is closed
		}
	}
}

// close ends the terminal and returns everything that it showed.
func (x *terminal) close() string {
	_ = x.program.Close() // it may be closed
	<-x.gone
	_ = x.person.Close()
	return x.text()
}

// text is everything that the terminal has shown so far.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.String()
}

// hides reports whether the terminal hides typed text.
func (x *terminal) hides(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(x.program.Fd()), unix.TCGETS)
	must(t, err)
	return state.Lflag&unix.ECHO == 0
}

// whenHidden does something as soon as the terminal hides typed text.
func (x *terminal) whenHidden(t *testing.T, do func()) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !x.hides(t); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("no prompt for a passphrase")
			return
		}
	}
	do()
}

var escapeSequence = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// lines are what a terminal shows, without colours and movements.
func lines(shown string) []string {
	return strings.Split(strings.TrimSpace(escapeSequence.ReplaceAllString(strings.ReplaceAll(shown, "\r", ""), "")), "\n")
}

// TestFindingsFitTheTerminal: every line but that of one long word, whatever the width, and no word is lost. Where there is no terminal, nothing is broken.
func TestFindingsFitTheTerminal(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("folder", 12))
	must(t, os.Mkdir(folder, 0o700))
	const tags = "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: tags}\nspec:\n  imageTagMirrors:\n  - {source: mcr.microsoft.com/windows, mirrors: [mirror.example.com/windows]}\n"
	must(t, os.WriteFile(filepath.Join(folder, "mirrors.yaml"), []byte(tags), 0o600))
	const cluster = " --from ../../golden/clusters/common --from ../../golden/clusters/none"
	for _, line := range []string{"status win-a --from ../../golden/clusters/none", "validate" + cluster + " --from " + folder, "diff" + cluster + " --from " + folder + " --against ../../golden/clusters/common --against ../../golden/clusters/none"} {
		status, plain, _ := runLine(t, line)
		if !slices.ContainsFunc(strings.Split(plain, "\n"), func(s string) bool { return len(s) > 120 }) {
			t.Fatalf("%s: status %d, no line is long:\n%s", line, status, plain)
		}
		for _, columns := range []int{60, 100} {
			x := newTerminalOf(t, uint16(columns))
			runCommand(t.Context(), app{stdin: x.program, stdout: x.program, stderr: io.Discard, now: time.Now, color: true}, strings.Fields(line))
			shown := lines(x.close())
			if diff := cmp.Diff(strings.Fields(plain), strings.Fields(strings.Join(shown, "\n"))); diff != "" {
				t.Errorf("%s: words (-plain +terminal):\n%s", line, diff)
			}
			for _, l := range findingLines(shown) {
				if utf8.RuneCountInString(l) > columns && len(strings.Fields(l)) > 1 {
					t.Errorf("%s: a line is longer than %d columns: %s", line, columns, l)
				}
			}
		}
	}
}

// findingLines are the lines of findings: all of validate, and of diff those before the changes of nodes.
func findingLines(shown []string) []string {
	if i := slices.IndexFunc(shown, func(l string) bool { return strings.HasPrefix(l, "win-a") }); i >= 0 {
		shown = shown[:i]
	}
	return slices.DeleteFunc(shown, func(l string) bool { return strings.HasPrefix(l, "+ ") }) // what a finding of diff is about is one line
}
