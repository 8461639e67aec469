package selftest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"wmco/applier/selftest/result"
)

// Machine is a Fixture on which the whole contract runs clause by clause, as on a real Windows.
type Machine interface {
	Fixture
	// Prepare makes the folder of the fixture empty, before each clause.
	Prepare(ctx context.Context) error
	// Clean removes everything that has a name of the self-test, and returns what it removed.
	Clean(ctx context.Context) ([]string, error)
	// Skips has the reasons for which clauses are skipped, by their names.
	Skips() map[string]string
	// System describes the machine.
	System(ctx context.Context) (result.System, error)
}

// Options are how a run is done.
type Options struct {
	// Program is the version of the program.
	Program string
	// Now is the clock.
	Now func() time.Time
	// Tell gets each outcome as it is known.
	Tell func(result.Outcome)
	// ClauseLimit is how long a clause may take; zero is five minutes.
	ClauseLimit time.Duration
}

// defaultClauseLimit is longer than a service that never starts takes with all that the host waits for.
const defaultClauseLimit = 5 * time.Minute

// Run tests all clauses on a machine. It first removes what an interrupted run has left, and at the end what this one
// has. An error means that the machine could not be prepared or cleaned; the result has what was found until then.
func Run(ctx context.Context, m Machine, o Options) (result.Result, error) {
	begin := o.Now()
	r := result.Result{Schema: result.Schema, Program: o.Program, Started: begin.UTC().Format(time.RFC3339)}
	var err error
	if r.System, err = m.System(ctx); err != nil {
		return r, fmt.Errorf("describing this machine: %w", err)
	}
	if r.Removed, err = m.Clean(ctx); err != nil {
		return r, fmt.Errorf("removing what an earlier run left: %w", err)
	}
	err = runParts(ctx, m, o, &r)
	// What was made is removed also when the run was interrupted.
	if _, failed := m.Clean(context.WithoutCancel(ctx)); failed != nil {
		r.Left = append(r.Left, failed.Error())
	}
	r.Seconds = o.Now().Sub(begin).Round(100 * time.Millisecond).Seconds()
	return r, err
}

func runParts(ctx context.Context, m Machine, o Options, r *result.Result) error {
	skips := m.Skips()
	hung := ""
	for _, part := range Parts() {
		for _, c := range part.Clauses {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			outcome := result.Outcome{Part: part.Name, Clause: c.Name, Status: result.StatusSkipped, Why: skips[c.Name]}
			switch {
			case outcome.Why != "":
			case hung != "":
				outcome.Why = fmt.Sprintf("the clause %q did not end", hung)
			default:
				if err := m.Prepare(ctx); err != nil {
					return fmt.Errorf("making an empty folder: %w", err)
				}
				a := newAttempt(ctx, o)
				if !a.run(c, m) {
					hung = c.Name
				}
				outcome.Status, outcome.Why, outcome.Failures = a.outcome()
			}
			r.Add(outcome)
			o.Tell(outcome)
		}
	}
	return nil
}

// attempt is the T of one clause in a Run.
type attempt struct {
	ctx      context.Context //nolint:containedctx // the context of a test is its own, as in package testing
	limit    time.Duration
	failures []result.Failure
	skipped  string
	undo     []func()
}

var (
	_ T        = (*attempt)(nil)
	_ recorder = (*attempt)(nil)
)

func newAttempt(ctx context.Context, o Options) *attempt {
	limit := o.ClauseLimit
	if limit == 0 {
		limit = defaultClauseLimit
	}
	return &attempt{ctx: ctx, limit: limit}
}

// run tests the clause in a goroutine of its own, which Fatal ends. It reports whether the clause ended within the
// limit; one that did not goes on, and nothing may be tested beside it.
func (a *attempt) run(c Clause, m Machine) (ended bool) {
	limited, cancel := context.WithTimeout(a.ctx, a.limit)
	defer cancel()
	inner := &attempt{ctx: limited}
	done := make(chan struct{})
	go func() {
		defer close(done)
		inner.guarded(func() { c.Test(inner, m) })
		for _, undo := range slices.Backward(inner.undo) {
			inner.guarded(undo)
		}
	}()
	select {
	case <-done:
	case <-time.After(a.limit + a.limit/4):
		a.failures = []result.Failure{{Expected: "an end", Seen: fmt.Sprintf("the clause was still running after %s", a.limit)}}
		return false
	}
	a.failures, a.skipped = inner.failures, inner.skipped
	return true
}

// guarded calls a function to its end, to a Goexit or to a panic.
func (a *attempt) guarded(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				a.record(result.Failure{Expected: "no panic", Seen: fmt.Sprint(p)})
			}
		}()
		call()
	}()
	<-done
}

func (a *attempt) outcome() (result.Status, string, []result.Failure) {
	switch {
	case len(a.failures) > 0:
		return result.StatusFailed, "", a.failures
	case a.skipped != "":
		return result.StatusSkipped, a.skipped, nil
	}
	return result.StatusPassed, "", nil
}

func (a *attempt) record(f result.Failure) { a.failures = append(a.failures, f) }

// Helper implements T.
func (*attempt) Helper() {}

// Context implements T.
func (a *attempt) Context() context.Context { return a.ctx }

// Cleanup implements T.
func (a *attempt) Cleanup(undo func()) { a.undo = append(a.undo, undo) }

// Error implements T.
func (a *attempt) Error(args ...any) {
	f := result.Failure{Seen: strings.TrimSpace(fmt.Sprintln(args...))}
	for _, arg := range args {
		if err, ok := arg.(error); ok && f.Code == 0 {
			f.Code = codeOf(err)
		}
	}
	a.record(f)
}

// Errorf implements T.
func (a *attempt) Errorf(format string, args ...any) { a.Error(fmt.Sprintf(format, args...)) }

// Fatal implements T.
func (a *attempt) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}

// Fatalf implements T.
func (a *attempt) Fatalf(format string, args ...any) { a.Fatal(fmt.Sprintf(format, args...)) }

// Skip implements T.
func (a *attempt) Skip(args ...any) {
	a.skipped = strings.TrimSpace(fmt.Sprintln(args...))
	runtime.Goexit()
}
