package remote

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"wmco/applier"
	"wmco/internal/sshtest"
)

// A round trip of 100 ms is longer than what the machine needs to answer: how long a run takes tells how many there are.
func TestRoundTripsOfARun(t *testing.T) {
	const delay = 100 * time.Millisecond
	s := programs.Start(t, sshtest.Options{})
	if _, err := machine(t, s).Apply(t.Context(), small(t, 30, 0), ApplyOptions{}, quiet); err != nil {
		t.Fatal(err)
	}
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{Delay: delay})
	m := client(t, dialer(t, s)).Machine(at(s, line.Address))
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tround trips\tprograms started\tbytes up\tbytes down\ttook")
	for i, step := range []struct {
		what    string
		version int
		result  applier.Result
		// most is how many round trips it may have, 0 any.
		most, starts int
	}{
		{"new connection, nothing differs", 0, applier.ResultSame, 0, 1},
		{"kept connection, nothing differs", 0, applier.ResultSame, 3, 1},
		{"kept connection, one file differs, the session begins", 1, applier.ResultApplied, 5, 1},
		{"session, nothing differs", 1, applier.ResultSame, 1, 0},
		{"session, one file differs", 2, applier.ResultApplied, 1, 0},
		{"session, one file differs, nothing known", 3, applier.ResultApplied, 2, 0},
	} {
		want := small(t, 30, step.version)
		if strings.HasSuffix(step.what, "nothing known") {
			m.client.left(m.target, want, applier.ResultPartial)
		}
		time.Sleep(4 * delay) // the channel for the next command is opened meanwhile
		before := len(s.Starts())
		line.Stats()
		begin := time.Now()
		r, err := m.Apply(t.Context(), want, ApplyOptions{}, quiet)
		took := time.Since(begin)
		if err != nil || r.Result != step.result {
			t.Fatalf("%d: %q, %v", i, r.Result, err)
		}
		trips, starts, stats := float64(took)/float64(2*delay), len(s.Starts())-before, line.Stats()
		fmt.Fprintf(w, "%s\t%.1f\t%d\t%d\t%d\t%s\n", step.what, trips, starts, stats.Up, stats.Down, took.Round(time.Millisecond))
		if step.most > 0 && trips >= float64(step.most)+1 || starts != step.starts {
			t.Errorf("%s: %.1f round trips and %d programs, want at most %d and %d", step.what, trips, starts, step.most, step.starts)
		}
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}
