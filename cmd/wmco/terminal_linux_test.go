package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

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
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	fd := int(person.Fd())
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
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
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.String()
}

// hides reports whether the terminal does not show what is typed.
func (x *terminal) hides(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(x.program.Fd()), unix.TCGETS)
	must(t, err)
	return state.Lflag&unix.ECHO == 0
}

// whenHidden does something as soon as the terminal does not show what is typed.
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
