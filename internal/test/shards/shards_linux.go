// Package shards runs the tests of a package in several processes, for tests that mostly wait and cannot share what
// they wait for: each process starts a control plane of its own.
//
//	go test --> TestMain: Run --+--> the same program, -test.run='^(A|C|...)$'
//	                            '--> the same program, -test.run='^(B|D|...)$'
package shards

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// shardVariable tells a process that it is one of several, and whether these run all tests. It does not start others.
const (
	shardVariable = "WMCO_TEST_SHARDS"
	shardOfAll    = "all"
	shardOfChosen = "chosen"
)

// oneProcess are the flags of go test whose result would be that of one process only, or that choose tests themselves.
var oneProcess = []string{"skip", "list", "bench", "fuzz", "coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace"}

// Options are how the tests of a package run in several processes.
type Options struct {
	Processes int
	// Begin is called before the first test, and End after the last one, in the process that starts the others, where all tests run; nil is
	// nothing.
	Begin, End func() error
}

// fewTests are started faster in one process.
const fewTests = 4

// Run runs the tests of the calling package in several processes, and returns the exit status for TestMain. Where few tests
// are chosen (go test -run), or measures, all of them run in this process, by here.
func Run(o Options, here func() int) int {
	flag.Parse()
	value := func(name string) string { return flag.Lookup("test." + name).Value.String() }
	measured := slices.ContainsFunc(oneProcess, func(name string) bool { return value(name) != "" })
	pattern := value("run")
	if measured || o.Processes < 2 || strings.Contains(pattern, "/") || os.Getenv(shardVariable) != "" {
		return here()
	}
	s, err := newSharded()
	var names []string
	if err == nil {
		names, err = s.listTests(cmp.Or(pattern, ".*"))
	}
	status := 1
	switch {
	case err != nil:
	case pattern == "":
		if err = callProcess(o.Begin); err == nil {
			status, err = s.splitTests(names, o.Processes)
			err = errors.Join(err, callProcess(o.End))
		}
	case len(names) < fewTests:
		return here()
	default:
		s.kind = shardOfChosen
		status, err = s.splitTests(names, o.Processes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		return max(status, 1)
	}
	return status
}

func callProcess(do func() error) error {
	if do == nil {
		return nil
	}
	return do()
}

// IsShard reports whether this process is one of several that run all tests of the package.
func IsShard() bool { return os.Getenv(shardVariable) == shardOfAll }

func (s sharded) splitTests(names []string, processes int) (status int, err error) {
	if s.folder, err = os.MkdirTemp("", "wmco-shards-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.folder)) }()
	results := s.runShards(dealNames(names, processes))
	return slices.Max(results), s.joinTestLogs(len(results))
}

// dealNames gives each process every nth name: neighbors are alike, and take about as long.
func dealNames(names []string, processes int) [][]string {
	hands := make([][]string, min(processes, max(len(names), 1)))
	for i, name := range names {
		hands[i%len(hands)] = append(hands[i%len(hands)], name)
	}
	return hands
}

// sharded is a test program whose tests run in several processes.
type sharded struct{ program, kind, folder string }

func newSharded() (sharded, error) {
	program, err := os.Executable()
	return sharded{program: program, kind: shardOfAll}, err
}

func (s sharded) listTests(pattern string) ([]string, error) {
	c := exec.CommandContext(context.Background(), s.program, "-test.list="+pattern)
	c.Env = append(os.Environ(), shardVariable+"="+s.kind)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return !strings.HasPrefix(name, "Test") }), nil
}

// runShards returns the exit status of each process. The output of one follows that of the one before it.
func (s sharded) runShards(hands [][]string) []int {
	results := make([]int, len(hands))
	outputs := make([]bytes.Buffer, len(hands))
	ended := make([]chan struct{}, len(hands))
	for i, names := range hands {
		ended[i] = make(chan struct{})
		out := io.Writer(&outputs[i])
		if i == 0 {
			out = os.Stdout
		}
		go func() {
			defer close(ended[i])
			results[i] = s.runTests(i, names, out)
		}()
	}
	for i := range hands {
		<-ended[i]
		_, _ = os.Stdout.Write(outputs[i].Bytes())
	}
	return results
}

// runTests runs tests in a process of their own, and returns its exit status.
func (s sharded) runTests(number int, names []string, out io.Writer) int {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "-test.testlogfile=") })
	args = append(args, "-test.run=^("+strings.Join(names, "|")+")$")
	if testLogFile() != "" {
		args = append(args, "-test.testlogfile="+s.testLog(number))
	}
	c := exec.CommandContext(context.Background(), s.program, args...)
	// What is not a file keeps Wait waiting for grandchildren that inherited it.
	locked := &lockedWriter{out: out}
	c.Stdout, c.Stderr = locked, locked
	c.Env = append(os.Environ(), shardVariable+"="+s.kind)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // go test kills only this process
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		_, _ = fmt.Fprintln(out, "shards:", err)
		return 1
	}
	return 0
}

type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// testLogFile is where go test, if it keeps results, finds what they depend on.
func testLogFile() string { return flag.Lookup("test.testlogfile").Value.String() }

func (s sharded) testLog(number int) string {
	return filepath.Join(s.folder, "testlog-"+strconv.Itoa(number))
}

// joinTestLogs writes the files and variables that the processes have read, each once, into the file from which go test
// knows whether its cached result is still true.
func (s sharded) joinTestLogs(processes int) (err error) {
	if testLogFile() == "" {
		return nil
	}
	file, err := os.Create(testLogFile())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	seen := map[string]bool{}
	for i := range processes {
		if err := copyNewLines(out, s.testLog(i), seen); err != nil {
			return err
		}
	}
	return out.Flush()
}

// copyNewLines copies the lines that were not seen before: tests look at the same files many thousand times.
func copyNewLines(out *bufio.Writer, name string, seen map[string]bool) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if !seen[lines.Text()] {
			seen[lines.Text()] = true
			_, _ = out.WriteString(lines.Text() + "\n") // Flush returns its error
		}
	}
	return lines.Err()
}
