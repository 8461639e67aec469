package testrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are the tests to run.
type Options struct {
	// Dir is the folder of the module.
	Dir string
	// Args are the flags and packages of go test.
	Args []string
	// Logs is the folder in which the output of each failed test is kept.
	Logs string
	// Again is how many failed tests are run once more at most, each alone. With more of them, or with a package that
	// fails without a failed test, none is.
	Again int
	// Strict makes a skip that is not allowed a failure.
	Strict  bool
	Allowed Allowed
	// Out gets the output.
	Out io.Writer
}

// Package is how long the tests of a package took.
type Package struct {
	Name string
	Took time.Duration
}

// Result is what became of the tests.
type Result struct {
	// Tests and subtests.
	Passed, Failed, Skipped int
	Packages                []Package
	// Skips are "TEST of PACKAGE (reason)".
	Skips []string
	// Again are the tests that failed first and passed alone.
	Again []string
	// refused are the skips that are not allowed, left the files and processes that the tests did not remove.
	refused, left []string
	broken        bool
}

// OK reports whether nothing failed or was left, and nothing was skipped that must not be.
func (r Result) OK() bool { return r.Failed == 0 && !r.broken && len(r.refused)+len(r.left) == 0 }

// Run tests packages. Its error means that the tests could not be run, or that their output could not be kept.
func Run(ctx context.Context, o Options) (Result, error) {
	o.Out = &lockedWriter{out: o.Out}
	s, err := newScratch(o.Logs)
	if err != nil {
		return Result{}, fmt.Errorf("making a folder for temporary files: %w", err)
	}
	p := printer{o: o, scratch: s}
	r, err := p.runTests(ctx)
	left, failed := s.removeLeft()
	if err != nil {
		return r, errors.Join(err, failed)
	}
	r.left = left
	p.printEnd(r)
	return r, errors.Join(failed, p.err)
}

func (p *printer) runTests(ctx context.Context) (Result, error) {
	o := p.o
	c, exit, err := p.goTest(ctx, o.Args...)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Passed: c.countEnded("pass"), Failed: c.countEnded("fail"), Skipped: c.countEnded("skip"), Packages: p.packages,
		broken: len(c.broken) > 0,
	}
	if exit != 0 && r.Failed == 0 {
		r.broken = true
	}
	if r.Failed > 0 && !r.broken && exit == 1 {
		if err := p.runAgain(ctx, c, &r); err != nil {
			return r, err
		}
	}
	for _, s := range c.skips {
		text := fmt.Sprintf("%s of %s (%s)", s.name.test, s.name.pkg, s.reason)
		r.Skips = append(r.Skips, text)
		if o.Strict && !o.Allowed.allowsSkip(s.name) {
			r.refused = append(r.refused, text)
		}
	}
	return r, nil
}

// lockedWriter is written by two: the go command's own output comes in between.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// printer prints while tests run.
type printer struct {
	o        Options
	scratch  scratch
	packages []Package
	err      error
}

func (p *printer) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.o.Out, format, args...) }

// goTest runs go test once, and returns its output and its exit status. Without go vet, which takes a fifth of the
// time: make lint runs it. Without tables for debuggers, which take a fifth of the time of linking.
func (p *printer) goTest(ctx context.Context, args ...string) (*collected, int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-vet=off", "-ldflags=-w"}, args...)...)
	cmd.Dir, cmd.Env = p.o.Dir, p.scratch.environment()
	cmd.Stderr = p.o.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its test programs then
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting go test: %w", err)
	}
	c := newCollected()
	err = readEvents(out, func(e event) {
		before := len(c.failures)
		ended := c.addEvent(e)
		for _, f := range c.failures[before:] {
			p.printFailure(f)
		}
		if ended {
			p.endPackage(e)
		}
	})
	var exit *exec.ExitError
	if waited := cmd.Wait(); err == nil && !errors.As(waited, &exit) {
		err = waited
	}
	if len(c.builds) > 0 {
		p.printf("%s", strings.Join(c.builds, ""))
	}
	return c, cmd.ProcessState.ExitCode(), err
}

func (p *printer) endPackage(e event) {
	took := time.Duration(e.Elapsed * float64(time.Second))
	if e.Action != "skip" { // a package without tests
		p.packages = append(p.packages, Package{e.Package, took})
	}
	switch e.Action {
	case "pass":
		p.printf("ok    %s  %.1fs\n", e.Package, took.Seconds())
	case "fail":
		p.printf("FAIL  %s  %.1fs\n", e.Package, took.Seconds())
	}
}

// printFailure prints why a test failed, and where all of its output is.
func (p *printer) printFailure(f failure) {
	name := f.name.pkg
	if f.name.test != "" {
		name = f.name.test + " of " + f.name.pkg
	}
	p.printf("\nfailed: %s\n%s", name, strings.Join(shownOf(f.output), ""))
	file := filepath.Join(p.o.Logs, fileName(f.name))
	if err := writeLog(file, f.output); err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("keeping the output of %s: %w", name, err))
		return
	}
	p.printf("    all of its output: %s\n\n", file)
}

func writeLog(file string, output []string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Join(output, "")), 0o600)
}

// fileName is that of the output of a test: names of subtests have any characters.
func fileName(n testName) string {
	test := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '_'
		}
		return r
	}, n.test)
	return filepath.Join(filepath.FromSlash(n.pkg), test[:min(len(test), 120)]+".log")
}

// runAgain runs each failed test once more, alone. One that does not pass then, because it fails, is skipped or does
// not run, stays failed.
func (p *printer) runAgain(ctx context.Context, c *collected, r *Result) error {
	var roots []testName
	for name, action := range c.results {
		if action == "fail" && !slices.Contains(roots, name.root()) {
			roots = append(roots, name.root())
		}
	}
	if len(roots) > p.o.Again {
		return nil
	}
	slices.SortFunc(roots, compareNames)
	flags := slices.DeleteFunc(slices.Clone(p.o.Args), func(arg string) bool { return !strings.HasPrefix(arg, "-timeout=") })
	for _, root := range roots {
		p.printf("again, alone: %s of %s\n", root.test, root.pkg)
		again, exit, err := p.goTest(ctx, append(flags, "-count=1", "-run", "^"+root.test+"$", root.pkg)...)
		if err != nil {
			return err
		}
		if result := again.results[root]; result != "pass" || exit != 0 {
			p.printf("    %s the second time: the test stays failed\n", describeResult(result))
			continue
		}
		r.Again = append(r.Again, root.test+" of "+root.pkg)
		for name, action := range c.results {
			if name.root() == root && action == "fail" {
				r.Failed, r.Passed = r.Failed-1, r.Passed+1
			}
		}
	}
	return nil
}

func describeResult(action string) string {
	switch action {
	case "skip":
		return "skipped"
	case "":
		return "not run"
	case "pass":
		return "passed, and its package failed,"
	}
	return "failed"
}

// printEnd prints the counts last, in one line that other programs read too.
func (p *printer) printEnd(r Result) {
	for _, text := range r.refused {
		p.printf("skipped, which is not allowed here: %s\n", text)
	}
	for _, text := range r.left {
		p.printf("left by a test: %s\n", text)
	}
	for _, text := range r.Again {
		p.printf("failed once, and passed alone: %s: a defect of the test or of the code\n", text)
	}
	if r.broken {
		p.printf("a package failed without a failed test: see above\n")
	}
	p.printf("tests: %d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
}
