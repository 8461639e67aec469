package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// edit changes what the host is.
func (w *world) edit(change func(*simulation.State)) {
	w.t.Helper()
	if err := w.host.Edit(context.Background(), change); err != nil {
		w.t.Fatal(err)
	}
}

// TestFactsAreWrittenWhenTheyChange: pods come and go, the host lists things in another order, its cloud does not always answer.
func TestFactsAreWrittenWhenTheyChange(t *testing.T) {
	w := newWorld(t)
	w.edit(func(s *simulation.State) {
		s.Facts.MetadataName, s.Facts.ProviderID = "ip-10-0-0-5.ec2.internal", "aws:///us-east-1a/i-0abc"
		s.Facts.Networks = []bundle.HNSNetwork{{Name: "b"}, {Name: bundletest.Network}}
	})
	w.bundle.Endpoints = []bundle.Endpoint{{Name: "VIPEndpoint", Network: bundletest.Network, Compartment: 1, Impact: bundle.ImpactNone}}
	w.publish(bundle.ImpactRestart)
	applied := w.turn()
	if applied.State != published.StateApplied {
		t.Fatalf("%s %s", applied.State, applied.Message)
	}
	// At once: the next bundle needs the endpoint that was just made.
	first := applied.Facts
	if first == nil || len(first.Endpoints) != 1 || first.Endpoints[0].Name != "VIPEndpoint" || len(first.Networks) != 2 {
		t.Fatalf("%+v", first)
	}
	reports := len(w.cluster.reports)
	for i := range 100 {
		w.edit(func(s *simulation.State) {
			delete(s.Settings, simulation.SettingKey(bundle.KindEndpoint, fmt.Sprint("pod-", i-1)))
			s.Put(plan.Setting{Kind: bundle.KindEndpoint, Name: fmt.Sprint("pod-", i), Value: bundletest.Network + "/1", Present: true})
			slices.Reverse(s.Facts.Networks)
			s.Facts.MetadataName = []string{"", "ip-10-0-0-5.ec2.internal"}[i%2]
			s.Facts.ProviderID = []string{"aws:///us-east-1a/i-0abc", ""}[i%2]
		})
		w.clock.Pass(6 * time.Minute)
		if diff := cmp.Diff(first, w.turn().Facts); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	if n := len(w.cluster.reports) - reports; n > 50 { // in ten hours: heartbeats
		t.Errorf("%d reports", n)
	}
	w.edit(func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, "10.0.0.4") })
	w.clock.Pass(6 * time.Minute)
	if got := w.turn().Facts; !slices.Equal(got.Addresses, []string{"10.0.0.4", "10.0.0.5"}) {
		t.Errorf("%+v", got)
	}
}

// TestANetworkIsReportedSoon: hybrid-overlay-node makes it some time after the bundle was applied, and the next bundle needs it.
func TestANetworkIsReportedSoon(t *testing.T) {
	w := newWorld(t)
	w.edit(func(s *simulation.State) { s.Facts.Networks = nil })
	w.bundle.Endpoints = []bundle.Endpoint{{Name: "VIPEndpoint", Network: bundletest.Network, Compartment: 1, Impact: bundle.ImpactNone}}
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || len(got.Facts.Networks) != 0 {
		t.Fatalf("%s %s: %+v", got.State, got.Message, got.Facts)
	}
	w.edit(func(s *simulation.State) { s.Facts.Networks = []bundle.HNSNetwork{{Name: bundletest.Network}} })
	if got := w.turn(); len(got.Facts.Networks) != 1 {
		t.Errorf("%+v", got.Facts)
	}
}

// TestFactsStayKnown: a node without facts would be rendered as one that has yet to join.
func TestFactsStayKnown(t *testing.T) {
	w := newWorld(t)
	w.edit(func(s *simulation.State) { s.Facts.Networks = []bundle.HNSNetwork{{Name: bundletest.Network}} })
	w.bundle.Endpoints = []bundle.Endpoint{{Name: "VIPEndpoint", Network: bundletest.Network, Compartment: 1, Impact: bundle.ImpactNone}}
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.clock.Pass(time.Hour)
	want := w.turn().Facts
	if want == nil || len(want.Endpoints) != 1 {
		t.Fatalf("%+v", want)
	}
	w.turn()                   // the watch has seen it
	w.cluster.node.Report = "" // a user removes the report
	n := len(w.cluster.reports)
	if got := w.turn(); len(w.cluster.reports) != n+1 || cmp.Diff(want, got.Facts) != "" {
		t.Errorf("%d reports, %+v", len(w.cluster.reports)-n, got.Facts)
	}
	w.restart()
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactRestart)
	parts := w.cluster.parts
	w.cluster.parts = nil // nothing can be fetched
	for range 10 {
		w.clock.Pass(time.Minute)
		w.turn()
		if got := w.lastReport(); got.Facts == nil || cmp.Diff(want, got.Facts) != "" || got.Applied == "" || len(got.Layers) != 2 {
			t.Fatalf("%+v", got)
		}
	}
	w.edit(func(s *simulation.State) { // more than an annotation holds
		for i := range 10000 {
			s.Facts.Features = append(s.Facts.Features, fmt.Sprint("feature-", i))
		}
	})
	w.restart()
	w.cluster.parts = parts
	if got := w.turn(); got.State != published.StateApplied || cmp.Diff(want, got.Facts) != "" {
		t.Errorf("%s %s, %d features", got.State, got.Message, len(got.Facts.Features))
	}
}

// TestAPersonAsksForARetry with a new value of the annotation, while the agent runs and before it starts; the same value asks for
// nothing.
func TestAPersonAsksForARetry(t *testing.T) { synctest.Test(t, checkAPersonAsksForARetry) }

func checkAPersonAsksForARetry(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.cluster.ready = func() time.Time { return time.Time{} }
	w.change(kubeletConf, "bad\n")
	w.publish(bundle.ImpactRestart)
	tries := func(what string, want int) {
		t.Helper()
		w.host.ClearLog()
		if got := w.turn(); got.State != published.StateRolledBack || w.starts("kubelet") != 2*want { // the change and the way back
			t.Errorf("%s: %s, %d starts", what, got.State, w.starts("kubelet"))
		}
	}
	tries("first", 1)
	tries("again", 0)
	w.cluster.node.Retry = "one"
	tries("asked", 1)
	tries("the same value", 0)
	w.restart()
	tries("another process", 0)
	w.restart()
	w.cluster.node.Retry = "two"
	tries("asked before it starts", 1)
	w.publish(bundle.ImpactDrain)
	tries("another permission for the same bundle", 0)
	w.cluster.ready, w.cluster.node.Retry = w.fresh, "three"
	if got := w.turn(); got.State != published.StateApplied || got.Retry != "three" {
		t.Errorf("%+v", got)
	}
}

// TestABundleThatSomebodyElseAppliedIsReplaced: the published one is what the node should have.
func TestABundleThatSomebodyElseAppliedIsReplaced(t *testing.T) {
	w := newWorld(t)
	d := w.publish(bundle.ImpactRestart)
	w.turn()
	right := w.file(mirrors)
	other := w.bundle.Changed(func(n *bundletest.Node) { n.Files[mirrors] = "by hand\n" })
	observed, err := w.engine().Observe(t.Context(), other.Manifest(w.t), w.archived(other, nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine().Apply(t.Context(), other.Manifest(w.t), w.archived(other, observed.Missing), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	w.clock.Pass(w.Options.Interval)
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle || w.file(mirrors) != right {
		t.Errorf("%+v, %q", got, w.file(mirrors))
	}
}

// TestTheClockIsWrongByAYear: it is set while nothing happens, and while a change is confirmed.
func TestTheClockIsWrongByAYear(t *testing.T) { synctest.Test(t, checkTheClockIsWrongByAYear) }

func checkTheClockIsWrongByAYear(t *testing.T) {
	t.Helper()
	const year = 365 * 24 * time.Hour
	for _, by := range []time.Duration{year, -year} {
		w := newWorld(t)
		w.publish(bundle.ImpactRestart)
		w.turn()
		right := w.file(mirrors)
		w.clock.Jump(by)
		w.host.Falsify(mirrors, "drifted\n")
		reports := len(w.cluster.reports)
		for range 7 * 60 {
			w.clock.Pass(time.Minute)
			w.turn()
		}
		if n := len(w.cluster.reports) - reports; w.file(mirrors) != right || n < 35 || n > 45 {
			t.Errorf("set by %s: %q, %d reports in 7 hours", by, w.file(mirrors), n)
		}
		for name, ready := range map[string]bool{"Ready": true, "silent": false} {
			asked, last := 0, w.fresh()
			w.cluster.ready = func() time.Time {
				if asked++; asked == 2 {
					w.clock.Jump(-by) // it is set right
				}
				if asked < 4 || !ready {
					return last // of before the change, in the wrong year
				}
				return w.fresh()
			}
			w.change(kubeletConf, "changed "+name)
			w.publish(bundle.ImpactRestart)
			want := map[bool]published.State{true: published.StateApplied, false: published.StateRolledBack}[ready]
			if got := w.turn(); got.State != want || ready && asked != 4 {
				t.Errorf("set by %s, %s: %s %s after %d questions", by, name, got.State, got.Message, asked)
			}
			w.clock.Jump(by)
		}
	}
}

// TestNothingThatTheAgentSendsHoldsASecret fails every operation of a change of secrets, and looks for them in the log, the reports,
// the conditions and the events.
func TestNothingThatTheAgentSendsHoldsASecret(t *testing.T) {
	synctest.Test(t, checkNothingThatTheAgentSendsHoldsASecret)
}

func checkNothingThatTheAgentSendsHoldsASecret(t *testing.T) {
	t.Helper()
	const planted = "sesame-planted"
	needles := []string{"sesame"}
	for _, text := range []string{"token: " + planted + "\n", "http://user:" + planted + "@proxy:3128"} {
		sum := sha256.Sum256([]byte(text))
		needles = append(needles, hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString([]byte(text))[:12])
	}
	failures := 0
	for n := 0; ; n++ {
		w := newWorld(t)
		w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
			n.Secrets[`C:\k\bootstrap-kubeconfig`], n.SecretProxy = "token: "+planted+"\n", "http://user:"+planted+"@proxy:3128"
		})
		d := w.publish(bundle.ImpactReboot)
		var log bytes.Buffer
		w.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		seen := 0
		w.host.Faults.Before = func(o simulation.Operation) error {
			if seen++; seen-1 != n {
				return nil
			}
			failures++
			return &applier.FileError{Path: o.Target, Reason: applier.FileDenied, Err: errors.New("denied: " + o.Target)}
		}
		if n == 0 {
			w.cluster.parts[d.Cluster.Names()[0]][5] ^= 1
		}
		for range 3 {
			w.turn()
			w.clock.Pass(10 * time.Minute)
		}
		sent, err := json.Marshal([]any{w.cluster.reports, w.cluster.events})
		if err != nil {
			t.Fatal(err)
		}
		for _, needle := range needles {
			if all := strings.ToLower(string(sent) + log.String()); strings.Contains(all, strings.ToLower(needle)) {
				t.Fatalf("operation %d: %s\n%s\n%s", n, needle, sent, &log)
			}
		}
		if n > 0 && seen <= n {
			break
		}
	}
	if failures < 20 {
		t.Errorf("only %d operations failed", failures)
	}
}
