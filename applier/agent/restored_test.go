package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// TestAReportThatTheNodeHasNoLongerIsSentAgain: etcd was restored to an earlier moment, or the annotation was removed. The operator waits for the
// report where the node is in its turn.
func TestAReportThatTheNodeHasNoLongerIsSentAgain(t *testing.T) {
	earlier, err := published.Report{State: published.StateApplying, Desired: bundle.Of([]byte("earlier"))}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		atRest(t, func(q *quiet, _ uint64) {
			now := func() string { q.mu.Lock(); defer q.mu.Unlock(); return q.report }
			time.Sleep(time.Minute) // the heartbeat of the hour has been sent
			right := now()
			for _, other := range []string{earlier, ""} {
				q.put(other)
				time.Sleep(5 * time.Second)
				if got := now(); got != right {
					t.Errorf("five seconds later the Node has the report %q", got)
				}
				time.Sleep(time.Minute)
			}
		})
	})
}

// TestAReportIsNotSentAgainAndAgain while others write there too.
func TestAReportIsNotSentAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		atRest(t, func(q *quiet, _ uint64) {
			for range 600 { // ten minutes
				q.put("")
				time.Sleep(time.Second)
			}
			if n := q.requests["PATCH /api/v1/nodes/win-a/status"]; n < 30 || n > 62 {
				t.Errorf("%d reports in ten minutes", n)
			}
		})
	})
}

// TestAWatchThatIsBehindShowsNoLostReport: what it shows just after a report was sent is the Node of before.
func TestAWatchThatIsBehindShowsNoLostReport(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	behind := w.cluster.node
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactRestart)
	behind.Desired = w.cluster.node.Desired
	w.turn() // it sends another report
	reports := len(w.cluster.reports)
	w.setNode(behind, w.changed)
	w.reporter.watched = false // the watch has not shown it yet
	for range 3 {
		if err := w.runDueWork(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clock.Pass(time.Second)
	}
	if n := len(w.cluster.reports); n != reports {
		t.Errorf("%d reports more", n-reports)
	}
	// The same Node later is no older one.
	w.clock.Pass(time.Minute)
	w.setNode(behind, w.changed)
	if err := w.runDueWork(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.cluster.reports); n != reports+1 {
		t.Errorf("%d reports more, a minute later", n-reports)
	}
}
