package mutations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
)

// Result is what became of a mutation.
type Result string

const (
	// Killed is a mutation that a test has failed for.
	Killed Result = "killed"
	// Survived is one that all its tests pass with.
	Survived Result = "survived"
	// Wrong is one that does not fit the tree.
	Wrong Result = "wrong"
	// Skipped is one whose tests are skipped on this computer.
	Skipped Result = "skipped"
	// Late is one that the limit of time left out.
	Late Result = "late"
)

// Options are for a run.
type Options struct {
	// Tree is the folder of the working tree, which is only read. Copy is where its copy is kept.
	Tree, Copy string
	// Limit is how long the run may take; 0 is no limit. What does not fit is Late.
	Limit time.Duration
	// Report gets a line for each mutation.
	Report io.Writer

	// limited returns a context that ends at the limit; nil ends it after that time. Tests end it when they choose.
	limited func(context.Context) (context.Context, context.CancelFunc)
}

// withLimit returns a context that ends at the limit.
func (o Options) withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case o.limited != nil:
		return o.limited(ctx)
	case o.Limit > 0:
		return context.WithTimeout(ctx, o.Limit)
	}
	return context.WithCancel(ctx)
}

// Summary is what became of all mutations.
type Summary map[Result][]string

// Err returns an error if a mutation has survived or is wrong, or none was judged although some were to be.
func (s Summary) Err() error {
	switch {
	case len(s[Survived])+len(s[Wrong]) > 0:
		return fmt.Errorf("%s survived and %d do not fit the tree: %s", bundle.Count(len(s[Survived]), "mutation"), len(s[Wrong]),
			strings.Join(slices.Concat(s[Survived], s[Wrong]), ", "))
	case len(s[Killed])+len(s[Skipped]) == 0:
		return errors.New("no mutation was judged; fix: raise the limit of time")
	}
	return nil
}

// runner is one run.
type runner struct {
	tree
	report  io.Writer
	summary Summary
}

// Run applies each mutation to the copy and runs its tests. The error is of the run itself or of its context; what
// became of the mutations is in the summary.
func Run(ctx context.Context, list []Mutation, o Options) (Summary, error) {
	r := runner{tree: tree{from: o.Tree, at: o.Copy}, report: o.Report, summary: Summary{}}
	if err := os.MkdirAll(o.Copy, 0o755); err != nil {
		return nil, err
	}
	held, err := lock(filepath.Clean(o.Copy) + ".lock")
	if err != nil {
		return nil, fmt.Errorf("locking the copy of the tree: %w", err)
	}
	defer func() { _ = held.Close() }() // nothing was written to it
	within, cancel := o.withLimit(ctx)
	defer cancel()
	if err := r.syncTree(within); err != nil {
		return nil, err
	}
	for pkg, group := range byPackage(list) {
		if err := r.judgePackage(within, pkg, group); err != nil && within.Err() == nil {
			return r.summary, err
		}
		if ctx.Err() != nil {
			return r.summary, ctx.Err()
		}
	}
	return r.summary, nil
}

// byPackage yields the mutations by the package of their tests, each package once, in the order of the list.
func byPackage(list []Mutation) func(yield func(string, []Mutation) bool) {
	return func(yield func(string, []Mutation) bool) {
		var order []string
		groups := map[string][]Mutation{}
		for _, m := range list {
			if groups[m.Package] == nil {
				order = append(order, m.Package)
			}
			groups[m.Package] = append(groups[m.Package], m)
		}
		for _, pkg := range order {
			if !yield(pkg, groups[pkg]) {
				return
			}
		}
	}
}

// judgePackage runs the named tests of a package without a mutation, and then with each.
func (r *runner) judgePackage(ctx context.Context, pkg string, group []Mutation) error {
	var tests []string
	for _, m := range group {
		for _, t := range m.Tests {
			if !slices.Contains(tests, t) {
				tests = append(tests, t)
			}
		}
	}
	before, err := r.runTests(ctx, pkg, tests)
	if err != nil {
		return r.noteLate(ctx, group, err)
	}
	for i, m := range group {
		begun := time.Now()
		result, why := before.whyUnusable(m)
		if result == "" {
			if result, why, err = r.judgeMutation(ctx, m); err != nil {
				return r.noteLate(ctx, group[i:], err)
			}
		}
		r.reportVerdict(m, result, why, time.Since(begun))
	}
	return nil
}

// noteLate notes the mutations that the limit of time left out.
func (r *runner) noteLate(ctx context.Context, group []Mutation, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		for _, m := range group {
			r.reportVerdict(m, Late, "", 0)
		}
	}
	return err
}

// whyUnusable returns why the tests of a mutation cannot judge it; no result if they can.
func (done tested) whyUnusable(m Mutation) (Result, string) {
	skipped := 0
	for _, t := range m.Tests {
		switch done.results[t] {
		case "pass":
		case "skip":
			skipped++
		case "fail":
			return Wrong, fmt.Sprintf("%s fails without the mutation\n%s", t, lastLines(done.by(t)))
		default:
			return Wrong, fmt.Sprintf(
				"%s has no result in %s: it does not exist, or the tests ended before it\n%s", t, m.Package,
				lastLines(done.output),
			)
		}
	}
	if skipped == len(m.Tests) {
		return Skipped, "its tests are skipped here"
	}
	return "", ""
}

// judgeMutation applies a mutation and runs its tests. The error is of the context.
func (r *runner) judgeMutation(ctx context.Context, m Mutation) (result Result, why string, err error) {
	err = r.withMutation(m, func() error {
		if err := r.compileTests(ctx, m); err != nil {
			return err
		}
		// -count=1: tests may run programs of the mutated package, which go test's cache does not know.
		done, err := r.runTests(ctx, m.Package, m.Tests, "-count=1", "-failfast")
		if err == nil {
			result, why = done.judgeResult(m)
		}
		return err
	})
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	if err != nil {
		return Wrong, err.Error(), nil //nolint:nilerr // it is the result of this mutation
	}
	return result, why, nil
}

// judgeResult returns what tests say about a mutation.
func (done tested) judgeResult(m Mutation) (Result, string) {
	fails := func(t string) bool { return done.results[t] == "fail" }
	switch {
	case done.unbuilt:
		return Wrong, "the tests do not compile with the mutation\n" + lastLines(done.output)
	case slices.ContainsFunc(m.Tests, fails):
		return Killed, "by " + m.Tests[slices.IndexFunc(m.Tests, fails)]
	case done.failed:
		return Wrong, "the tests ended without a result\n" + lastLines(done.output)
	}
	return Survived, ""
}

// reportVerdict notes and reports what became of a mutation.
func (r *runner) reportVerdict(m Mutation, result Result, why string, took time.Duration) {
	r.summary[result] = append(r.summary[result], m.Name)
	line := fmt.Sprintf("%-8s %5.1fs  %s", result, took.Seconds(), m.Name)
	switch result {
	case Killed:
		line += ", " + why
	case Survived:
		line += ": no test of " + strings.Join(m.Tests, ", ") + " in " + m.Package + " fails although this does not hold any more:\n\t" + m.Sentence +
			"\n\t" + m.File + ": " + quoteOutput(m.Old) + "\n\tis now: " + quoteOutput(m.New)
	case Wrong, Skipped:
		line += ": " + why
	case Late:
		line += ": not judged within the limit of time"
	}
	fmt.Fprintln(r.report, line)
}

// quoteOutput shows a text in one line.
func quoteOutput(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return "(removed)"
	}
	return text
}
