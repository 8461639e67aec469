// Testrun runs go test, prints failures so that they can be read, and counts what was skipped.
//
//	testrun [-dir MODULE] [-logs FOLDER] [-allowed FILE] [-skipped FILE] [-times FILE] [-again N] -- FLAGS AND PACKAGES OF go test
//
// It exits with 1 if a test failed, or was skipped that is not in the file of allowed skips, and with 2 if the tests
// could not be run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"wmco/internal/build/testrun"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func run(ctx context.Context) (bool, error) {
	o := testrun.Options{Out: os.Stdout}
	flag.StringVar(&o.Dir, "dir", ".", "folder of the module")
	flag.StringVar(&o.Logs, "logs", "bin/test-logs", "folder for the output of failed tests")
	flag.IntVar(&o.Again, "again", 0, "how many failed tests run once more at most")
	allowed := flag.String("allowed", "", "file with the skips that are allowed; without it, all are")
	skipped := flag.String("skipped", "", "file that gets a line for each skip")
	times := flag.String("times", "", "file that gets the seconds of each package")
	flag.Parse()
	o.Args = flag.Args()
	if *allowed != "" {
		text, err := os.ReadFile(*allowed)
		if err != nil {
			return false, err
		}
		if o.Allowed, err = testrun.ParseAllowed(string(text)); err != nil {
			return false, fmt.Errorf("reading %s: %w", *allowed, err)
		}
		o.Strict = true
	}
	result, err := testrun.Run(ctx, o)
	if err != nil {
		return false, err
	}
	var skips, seconds strings.Builder
	for _, s := range result.Skips {
		fmt.Fprintf(&skips, "skipped: %s\n", s)
	}
	for _, p := range result.Packages {
		fmt.Fprintf(&seconds, "%.1f\t%s\n", p.Took.Seconds(), p.Name)
	}
	if err := appendTo(*skipped, skips.String()); err != nil {
		return false, err
	}
	return result.OK(), appendTo(*times, seconds.String())
}

// appendTo adds lines to a file; without a name, it does nothing.
func appendTo(file, text string) error {
	if file == "" || text == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}
