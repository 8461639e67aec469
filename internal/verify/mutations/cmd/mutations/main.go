// Command mutations breaks lines that safety depends on, one at a time in a copy of the tree, and checks that the tests
// named beside each fail. The Makefile calls it.
//
//	mutations [-list] [-sample N [-seed TEXT]] [-by PACKAGE:TEST] [-limit TIME] [-lists DIR] [-copy DIR] [NAME...]
//
// With -by, one test judges all of them: which mutations it kills, and which it does not. It runs in the root of the tree, which is only read. Without names and without -sample, all mutations are applied.
//
// Exit status: 0 all were killed, or their tests are skipped on this computer; 1 one survived, or the list does not fit
// the tree; 2 wrong use; 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"wmco/internal/verify/mutations"
)

const (
	exitSurvived    = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errUsage is for arguments that make no sense.
var errUsage = errors.New("usage: mutations [-list] [-sample N [-seed TEXT]] [-by PACKAGE:TEST] [-limit TIME] [-lists DIR] [-copy DIR] [NAME...]")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "mutations:", err)
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(exitInterrupted)
	case errors.Is(err, errUsage):
		os.Exit(exitUsage)
	}
	os.Exit(exitSurvived)
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutations", flag.ContinueOnError)
	only := flags.Bool("list", false, "print the mutations and their sentences, and apply none")
	sample := flags.Int("sample", 0, "apply this many mutations whose tests run in memory")
	seed := flags.String("seed", "", "what chooses the sample: the same text, the same mutations")
	by := flags.String("by", "", "the test that judges, such as ./internal/test/world:TestWorld; empty is those of the list")
	limit := flags.Duration("limit", 0, "stop after this time; 0 is no limit")
	lists := flags.String("lists", filepath.Join("internal", "verify", "mutations", "list"), "the folder of the lists")
	copied := flags.String("copy", filepath.Join("bin", "mutations", "tree"), "where the copy of the tree is kept")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil || *sample < 0 || *sample > 0 && flags.NArg() > 0:
		return errUsage
	}
	all, err := mutations.Read(os.DirFS(*lists))
	if err != nil {
		return err
	}
	chosen := all
	switch {
	case *sample > 0:
		chosen = mutations.ChooseSample(all, *sample, *seed)
	case flags.NArg() > 0:
		if chosen, err = mutations.ChooseNamed(all, flags.Args()); err != nil {
			return fmt.Errorf("%w\n%w", err, errUsage)
		}
	}
	if pkg, test, ok := strings.Cut(*by, ":"); ok {
		for i := range chosen {
			chosen[i].Package, chosen[i].Tests, chosen[i].Needs = pkg, []string{test}, mutations.NeedNothing
		}
	}
	if *only {
		for _, m := range chosen {
			fmt.Printf("%s\n\t%s\n", m.Name, m.Sentence)
		}
		return nil
	}
	return judgeMutations(ctx, chosen, mutations.Options{Copy: *copied, Limit: *limit, Report: os.Stdout})
}

// judgeMutations runs the mutations on the tree of the current folder and reports how many were killed.
func judgeMutations(ctx context.Context, chosen []mutations.Mutation, o mutations.Options) error {
	var err error
	if o.Tree, err = os.Getwd(); err != nil {
		return err
	}
	if o.Copy, err = filepath.Abs(o.Copy); err != nil {
		return err
	}
	begun := time.Now()
	summary, err := mutations.Run(ctx, chosen, o)
	fmt.Printf("%d of %d mutations killed, %d skipped, %d not judged in time, in %s\n", len(summary[mutations.Killed]), len(chosen),
		len(summary[mutations.Skipped]), len(summary[mutations.Late]), time.Since(begun).Round(time.Second))
	if err != nil {
		return err
	}
	if err := noteSkipped(summary[mutations.Skipped]); err != nil {
		return err
	}
	return summary.Err()
}

// noteSkipped adds what was skipped to the list that make prints at its end.
func noteSkipped(names []string) error {
	path := os.Getenv("WMCO_SKIPPED")
	if len(names) == 0 || path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "skipped: mutations (their tests are skipped here: %s)\n", strings.Join(names, ", "))
	return errors.Join(err, f.Close())
}
