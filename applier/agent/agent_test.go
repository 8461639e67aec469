package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

const (
	mirrors     = `C:\k\containerd\registries\a.io\hosts.toml`
	kubeletConf = `C:\k\kubelet.conf`
	kubelet     = `C:\k\kubelet.exe`
)

// change changes the bundle that the next publish publishes.
func (w *world) change(path, text string) {
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) { n.Files[path] = text })
}

func TestAMirrorChangeRestartsNothing(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn() // the bundle that the host has already
	if got := w.lastReport(); got.State != published.StateApplied || len(w.cluster.events) != 0 {
		t.Fatalf("%+v, %+v", got, w.cluster.events)
	}
	w.host.ClearLog()
	w.change(mirrors, "server = \"https://mirror\"\n")
	d := w.publish(bundle.ImpactRestart)
	w.cluster.ready = func() time.Time { t.Error("a change without an impact asks for the Node"); return time.Time{} }
	got := w.turn()
	want := published.Report{
		Schema: published.Schema, Program: "test", State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle,
		Layers: []bundle.Digest{d.Cluster.Digest, d.Node.Digest}, Features: slices.Sorted(slices.Values(append(published.Features(), published.FeatureRemove))),
	}
	facts := got.Facts
	if want.Pulled = got.Pulled; got.Pulled < 100 {
		t.Errorf("%d bytes are pulled", got.Pulled)
	}
	if got.Facts = nil; facts == nil || facts.HostName != "winhost" {
		t.Errorf("facts %+v", facts)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if w.file(mirrors) != "server = \"https://mirror\"\n" || w.starts("kubelet")+w.starts("containerd") != 0 {
		t.Errorf("%q, %d starts", w.file(mirrors), w.starts("kubelet"))
	}
	if len(w.cluster.events) != 1 || w.cluster.events[0].Reason != EventApplied || w.cluster.events[0].Warning {
		t.Errorf("events %+v", w.cluster.events)
	}
}

// TestANodeThatHasJustJoinedReportsItsFacts: the operator publishes nothing for a node whose facts it does not know.
func TestANodeThatHasJustJoinedReportsItsFacts(t *testing.T) {
	w := newWorld(t)
	got := w.turn()
	if got.State != published.StateUnpublished || got.Facts == nil || got.Facts.HostName != "winhost" || got.Desired != "" {
		t.Fatalf("%+v", got)
	}
	if s := w.cluster.reports[0]; s.State == published.StateApplied || s.Message == "" {
		t.Errorf("condition %+v", s)
	}
	w.turn()
	if n := len(w.cluster.reports); n != 1 {
		t.Errorf("%d reports of the same", n)
	}
	d := w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle {
		t.Errorf("%+v", got)
	}
	w.cluster.node.Desired = "" // a user removes it: the host's bundle stays in the report
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle {
		t.Errorf("%+v", got)
	}
}

func TestAChangeThatRestartsIsConfirmedByTheKubelet(t *testing.T) {
	w := newWorld(t)
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
	w.publish(bundle.ImpactRestart)
	begun, asked := w.clock.Now(), 0
	w.cluster.ready = func() time.Time { // the kubelet reports with the fourth question
		if asked++; asked < 4 {
			return begun.Add(-time.Minute)
		}
		return w.clock.Now()
	}
	if got := w.turn(); got.State != published.StateApplied || asked != 4 {
		t.Errorf("%s %s after %d questions", got.State, got.Message, asked)
	}
	states := []published.State{}
	for _, s := range w.cluster.reports {
		states = append(states, s.State)
	}
	if diff := cmp.Diff([]published.State{published.StateApplying, published.StateApplied}, states); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if s := w.cluster.reports[1]; s.Message == "" || !s.Changed.After(w.cluster.reports[0].Changed) {
		t.Errorf("condition %+v", s)
	}
}

// TestABundleThatBreaksTheNodeIsRolledBackOnce: it is not retried until it changes or a person asks.
func TestABundleThatBreaksTheNodeIsRolledBackOnce(t *testing.T) {
	synctest.Test(t, checkABundleThatBreaksTheNodeIsRolledBackOnce)
}

func checkABundleThatBreaksTheNodeIsRolledBackOnce(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.cluster.ready = func() time.Time { return time.Time{} } // not Ready
	before := w.file(kubeletConf)
	w.change(kubeletConf, "nonsense\n")
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateRolledBack || w.file(kubeletConf) != before {
		t.Fatalf("%s: %s\n%s", got.State, got.Message, w.file(kubeletConf))
	}
	if got := w.lastReport(); got.Cause != published.CauseConfirmation {
		t.Errorf("cause %q", got.Cause)
	}
	if last := w.cluster.events[len(w.cluster.events)-1]; last.Reason != EventRolledBack || !last.Warning {
		t.Errorf("event %+v", last)
	}
	w.host.ClearLog()
	reports := len(w.cluster.reports)
	for range 3 {
		w.turn()
	}
	w.restart() // another process
	for range 3 {
		w.clock.Pass(time.Minute)
		w.turn()
	}
	if n := w.starts("kubelet"); n != 0 || len(w.cluster.reports) > reports+1 {
		t.Errorf("%d starts, %d more reports", n, len(w.cluster.reports)-reports)
	}
	if got := w.lastReport(); got.State != published.StateRolledBack || got.Cause != published.CauseConfirmation {
		t.Errorf("another process says %s, cause %q", got.State, got.Cause)
	}
	w.cluster.ready = w.clock.Now
	w.cluster.node.Retry = "1" // a person asks
	if got := w.turn(); got.State != published.StateApplied || got.Cause != "" || w.file(kubeletConf) != "nonsense\n" {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}

func TestWhatCostsMoreIsReportedAndNotDone(t *testing.T) {
	w := newWorld(t)
	before := w.file(kubeletConf)
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
	w.publish(bundle.ImpactNone)
	w.host.ClearLog()
	got := w.turn()
	if got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactRestart || w.file(kubeletConf) != before || w.starts("kubelet") != 0 {
		t.Errorf("%+v", got)
	}
	w.publish(bundle.ImpactRestart) // the rollout permits it
	if got := w.turn(); got.State != published.StateApplied || got.Impact != "" || w.file(kubeletConf) == before {
		t.Errorf("%+v", got)
	}
}

func TestMissingExecutablesAreNamedAndWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) { n.Programs[kubelet] = "another kubelet" })
	w.publish(bundle.ImpactRestart)
	w.host.ClearLog()
	got := w.turn()
	if got.State != published.StatePayloadMissing || !slices.Equal(got.Missing, []string{kubelet}) || w.starts("kubelet") != 0 {
		t.Fatalf("%+v", got)
	}
	w.host.Place(kubelet, bundle.AccessUsers, "another kubelet") // the operator copies it
	w.repairAt = w.sinceBoot() + time.Hour
	w.clock.Pass(lastRetry)
	if got := w.turn(); got.State != published.StateApplied || got.Missing != nil {
		t.Errorf("%+v", got)
	}
}

// TestLayersThatCannotBeReadYet: the authorizer may learn of a Role later than the Node of its bundle.
func TestLayersThatCannotBeReadYet(t *testing.T) {
	w := newWorld(t)
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactRestart)
	parts := w.cluster.parts
	w.cluster.parts = nil
	for begin := w.clock.Now(); w.clock.Now().Sub(begin) < publishedWithin-lastRetry/4; w.clock.Pass(2 * time.Second) {
		if got := w.turn(); got.State != "" {
			t.Fatalf("after %s: %s", w.clock.Now().Sub(begin), got.State)
		}
	}
	w.clock.Pass(publishedWithin)
	if got := w.turn(); got.State != published.StateFailed || !strings.Contains(got.Message, "not published") {
		t.Fatalf("%+v", got)
	}
	w.cluster.parts = parts
	w.clock.Pass(lastRetry)
	if got := w.turn(); got.State != published.StateApplied || w.file(mirrors) != "changed\n" {
		t.Errorf("%+v", got)
	}
}

// TestAnotherRunThatWaitsForItsConfirmation is no failure of the node: the operator that adopts it waits for its kubelet.
func TestAnotherRunThatWaitsForItsConfirmation(t *testing.T) {
	w := newWorld(t)
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactRestart)
	for begin := w.clock.Now(); w.clock.Now().Sub(begin) < lockedWithin-lastRetry/4; w.clock.Pass(20 * time.Second) {
		w.turnDuringAnotherRun()
		if got := w.lastReport().State; got == published.StateFailed {
			t.Fatalf("after %s: %s", w.clock.Now().Sub(begin), got)
		}
	}
	w.clock.Pass(lockedWithin)
	w.turnDuringAnotherRun()
	if got := w.lastReport(); got.State != published.StateFailed || !strings.Contains(got.Message, "another run") {
		t.Fatalf("%+v", got)
	}
	w.clock.Pass(lastRetry)
	if got := w.turn(); got.State != published.StateApplied || w.file(mirrors) != "changed\n" {
		t.Errorf("%+v", got)
	}
}

func TestPublishedLayersThatAreDamaged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(part []byte) []byte
		says   string
	}{
		{"cut", func(part []byte) []byte { return part[:20] }, "opening layer"},
		{"cut in half", func(part []byte) []byte { return part[:len(part)/2] }, "opening layer"},
		{"a byte differs", func(part []byte) []byte { part = slices.Clone(part); part[len(part)/2] ^= 1; return part }, "opening layer"},
		{"empty", func([]byte) []byte { return nil }, "opening layer"},
		{"no layer", func([]byte) []byte { return []byte("windows") }, "opening layer"},
		{"another layer's", func([]byte) []byte {
			data, _ := archive.PackLayer(bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined})
			return data
		}, "the layer is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.turn() // which writes the cache of a comparison
			before := w.host.Snapshot()
			w.change(kubeletConf, "changed\n")
			d := w.publish(bundle.ImpactRestart)
			good := maps.Clone(w.cluster.parts)
			name := d.Cluster.Names()[0]
			w.cluster.parts[name] = tt.damage(good[name])
			got := w.turn()
			if got.State != published.StateFailed || got.Desired != d.Bundle {
				t.Fatalf("%+v", got)
			}
			if got.Fault != published.FaultLayer || !strings.Contains(got.Message, "Secret "+name+" of namespace operator is damaged") || !strings.Contains(got.Message, tt.says) || got.BlamesInput() {
				t.Errorf("fault %q: %s", got.Fault, got.Message)
			}
			if diff := cmp.Diff(before, w.host.Snapshot()); diff != "" {
				t.Errorf("the host changed:\n%s", diff)
			}
			w.cluster.parts = good // the operator publishes it again
			w.clock.Pass(lastRetry)
			if got := w.turn(); got.State != published.StateApplied || w.file(kubeletConf) != "changed\n" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAnnotationsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{`{"schema":9}`: "use a newer wmco", "{": "invalid"} {
		w.cluster.node.Desired = text
		if got := w.turn(); got.State != published.StateFailed || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %s: %s", text, got.State, got.Message)
		}
	}
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied {
		t.Errorf("a good one after a bad one: %+v", got)
	}
}

// TestTheAPIServerIsAway: what may cut the host off is not begun, and a change that cut it off is rolled back.
func TestTheAPIServerIsAway(t *testing.T) { synctest.Test(t, checkTheAPIServerIsAway) }

func checkTheAPIServerIsAway(t *testing.T) {
	t.Helper()
	away := errors.New("connection refused")
	w := newWorld(t)
	before := w.file(kubeletConf)
	w.change(kubeletConf, "changed\n")
	w.publish(bundle.ImpactRestart)
	w.cluster.ready = func() time.Time { w.cluster.away = away; return time.Time{} } // and gone after the first question
	if got := w.turn(); w.file(kubeletConf) != before || got.State != "" {
		t.Errorf("%s, %q", got.State, w.file(kubeletConf))
	}
	w.cluster.away = nil
	if got := w.turn(); got.State != published.StateRolledBack {
		t.Errorf("back again, it says %s", got.State)
	}

	w = newWorld(t)
	w.change(kubeletConf, "changed\n")
	w.publish(bundle.ImpactRestart)
	w.cluster.away = away
	w.host.ClearLog()
	w.turn()
	if w.file(kubeletConf) != before || w.starts("kubelet") != 0 || len(w.cluster.reports) != 0 {
		t.Errorf("changed while the API server is away: %q", w.file(kubeletConf))
	}
	w.host.Falsify(mirrors, "drifted\n")
	w.clock.Pass(w.Options.Interval)
	w.turn()
	if w.file(mirrors) == "drifted\n" {
		t.Error("drift is not repaired while the API server is away")
	}
	w.cluster.away = nil
	w.clock.Pass(lastRetry)
	if got := w.turn(); got.State != published.StateApplied || w.file(kubeletConf) != "changed\n" {
		t.Errorf("%+v", got)
	}
}

// TestAChangeThatCannotBeTheReasonStays: the API server goes away while the change is confirmed.
func TestAChangeThatCannotBeTheReasonStays(t *testing.T) {
	synctest.Test(t, checkAChangeThatCannotBeTheReasonStays)
}

func checkAChangeThatCannotBeTheReasonStays(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.withExporter()
	w.change(`C:\k\exporter.yaml`, "b\n")
	w.publish(bundle.ImpactRestart)
	w.cluster.ready = func() time.Time { w.cluster.away = errors.New("connection refused"); return time.Time{} }
	w.turn()
	w.cluster.away = nil
	if got := w.turn(); got.State != published.StateApplied || w.file(`C:\k\exporter.yaml`) != "b\n" {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}

func TestDriftIsRepairedAndCounted(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	right := w.file(mirrors)
	w.host.Falsify(mirrors, "drifted\n")
	w.clock.Pass(7 * time.Hour) // every file is read
	got := w.turn()
	if w.file(mirrors) != right || got.Repaired != 1 || w.cluster.events[len(w.cluster.events)-1].Reason != EventRepaired {
		t.Errorf("%q, %+v", w.file(mirrors), got)
	}
}

// TestDriftThatCostsMoreIsReported: a permission ends with its bundle, and drift gives none.
func TestDriftThatCostsMoreIsReported(t *testing.T) {
	w := newWorld(t)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) { n.Impacts = map[string]bundle.Impact{kubeletConf: bundle.ImpactDrain} })
	w.publish(bundle.ImpactDrain)
	if got := w.turn(); got.State != published.StateApplied {
		t.Fatalf("%+v", got)
	}
	w.publish(bundle.ImpactRestart) // its turn has ended
	w.turn()
	w.host.Falsify(kubeletConf, "drifted\n")
	w.host.ClearLog()
	w.clock.Pass(7 * time.Hour)
	if got := w.turn(); got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactDrain || w.file(kubeletConf) != "drifted\n" || w.starts("kubelet") != 0 {
		t.Errorf("%+v, %q", got, w.file(kubeletConf))
	}
	w.publish(bundle.ImpactDrain) // the same bundle, with the permission
	if got := w.turn(); got.State != published.StateApplied || got.Impact != "" || w.file(kubeletConf) == "drifted\n" {
		t.Errorf("%+v, %q", got, w.file(kubeletConf))
	}
}

// TestDriftIsRepairedWithARestart: a change that was permitted no restart has none; what was applied is kept right.
func TestDriftIsRepairedWithARestart(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactNone)
	w.turn()
	w.host.Falsify(kubeletConf, "drifted\n")
	w.host.ClearLog()
	w.clock.Pass(7 * time.Hour)
	if got := w.turn(); got.State != published.StateApplied || got.Repaired == 0 || w.file(kubeletConf) == "drifted\n" || w.starts("kubelet") != 1 {
		t.Errorf("%+v, %q, %d starts", got, w.file(kubeletConf), w.starts("kubelet"))
	}
}

func TestAPausedNodeIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	first := w.turn()
	w.cluster.node.Paused = true
	w.host.Falsify(mirrors, "by hand\n")
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
	w.publish(bundle.ImpactRestart)
	w.host.ClearLog()
	w.clock.Pass(7 * time.Hour)
	if got := w.turn(); got.Desired != first.Desired || got.Repaired != 0 || w.file(mirrors) != "by hand\n" || w.starts("kubelet") != 0 {
		t.Errorf("%+v, %q, %d starts", got, w.file(mirrors), w.starts("kubelet"))
	}
	w.cluster.node.Paused = false
	if got := w.turn(); got.State != published.StateApplied || got.Desired == first.Desired || w.file(mirrors) == "by hand\n" || w.starts("kubelet") != 1 {
		t.Errorf("%+v, %q, %d starts", got, w.file(mirrors), w.starts("kubelet"))
	}
}

// TestAConditionIsNewWithEachBundle: how long a change without a restart has taken is read from it.
func TestAConditionIsNewWithEachBundle(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactNone)
	w.turn()
	first := w.cluster.reports[len(w.cluster.reports)-1]
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactNone)
	w.clock.Pass(time.Minute)
	w.turn()
	second := w.cluster.reports[len(w.cluster.reports)-1]
	if second.State != published.StateApplied || !second.Changed.After(first.Changed) {
		t.Errorf("%s at %s, before at %s", second.State, second.Changed, first.Changed)
	}
	w.clock.Pass(heartbeatInterval)
	w.turn()
	if last := w.cluster.reports[len(w.cluster.reports)-1]; !last.Changed.Equal(second.Changed) || last.Time.Equal(second.Time) {
		t.Errorf("%s, heartbeat %s", last.Changed, last.Time)
	}
}

func TestARestingAgentWritesAHeartbeatOnly(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	reports := len(w.cluster.reports)
	for range 60 {
		w.clock.Pass(time.Minute)
		w.turn()
	}
	if n := len(w.cluster.reports) - reports; n < 5 || n > 6 {
		t.Errorf("%d reports in an hour of rest", n)
	}
}

// TestChangesOfOneMomentEndWithTheLast publishes a hundred bundles, of which the agent sees some: it skips old ones.
func TestChangesOfOneMomentEndWithTheLast(t *testing.T) {
	w := newWorld(t)
	var last published.Desired
	for i := range 100 {
		w.change(mirrors, fmt.Sprintf("change %d\n", i))
		last = w.publish(bundle.ImpactRestart)
		if i%17 == 0 {
			w.turn()
		}
	}
	if got := w.turn(); got.Applied != last.Bundle || w.file(mirrors) != "change 99\n" {
		t.Errorf("%+v, %q", got, w.file(mirrors))
	}
}

func TestAKilledAgentContinues(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newWorld(t)
		w.change(kubeletConf, "changed\n")
		d := w.publish(bundle.ImpactRestart)
		w.host.CutAt(cut)
		w.setNode(w.cluster.node, w.changed)
		_ = w.runDueWork(t.Context())
		if !w.host.Cut() {
			if cut < 10 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
		w.host.Revive()
		w.cluster.ready = w.clock.Now
		w.restart()
		for range 6 {
			w.turn()
			w.clock.Pass(10 * time.Minute)
		}
		if got := w.lastReport(); got.Applied != d.Bundle || w.file(kubeletConf) != "changed\n" {
			t.Fatalf("killed at step %d: %s %s, %q", cut, got.State, got.Message, w.file(kubeletConf))
		}
	}
}

// TestAPausedNodeGetsWhatIsUrgent and nothing else: what an administrator changed by hand stays, and what was published before does not
// come.
func TestAPausedNodeGetsWhatIsUrgent(t *testing.T) {
	const clientCA, unknown = `C:\k\kubelet-ca.crt`, `C:\k\containerd\registries\b.io\hosts.toml`
	w := newWorld(t)
	w.change(clientCA, "old\n")
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.cluster.node.Paused = true
	w.host.Falsify(mirrors, "by hand\n")
	w.host.Place(unknown, bundle.AccessAdmins, "by hand")
	w.host.Falsify(kubeletConf, "by hand\n")
	w.change(clientCA, "new\n")
	d := w.publish(bundle.ImpactNone)
	w.host.ClearLog()
	if got := w.turn(); got.Desired == d.Bundle || w.file(clientCA) != "old\n" {
		t.Fatalf("a paused node follows: %+v", got)
	}
	w.publishUrgent()
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle || w.file(clientCA) != "new\n" {
		t.Fatalf("%s %s, %q", got.State, got.Message, w.file(clientCA))
	}
	w.clock.Pass(7 * time.Hour)
	w.turn()
	for path, want := range map[string]string{mirrors: "by hand\n", kubeletConf: "by hand\n", unknown: "by hand"} {
		if got := w.file(path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
	if n := w.starts("kubelet"); n > 0 {
		t.Errorf("%d starts", n)
	}
	w.cluster.node.Paused = false
	w.clock.Pass(7 * time.Hour)
	if got := w.turn(); got.State != published.StateApplied || w.file(mirrors) == "by hand\n" || w.file(kubeletConf) == "by hand\n" || w.file(clientCA) != "new\n" {
		t.Errorf("%s %s, %q", got.State, got.Message, w.file(mirrors))
	}
}

// TestUrgentNeedsPermissionToo: an agent does not take the word of the operator for what a change costs.
func TestUrgentNeedsPermissionToo(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.cluster.node.Paused = true
	before := w.file(kubeletConf)
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
	w.publish(bundle.ImpactNone)
	w.publishUrgent()
	if got := w.turn(); got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactRestart || w.file(kubeletConf) != before {
		t.Errorf("%s %s", got.State, w.file(kubeletConf))
	}
}

// TestAServiceThatEndsByItself is reported, and what the agent restarts is not.
func TestAServiceThatEndsByItself(t *testing.T) {
	w := newWorld(t)
	crash := func() {
		t.Helper()
		if err := errors.Join(w.host.StopService(t.Context(), "kubelet"), w.host.StartByItself(t.Context(), "kubelet")); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.host.Falsify(kubeletConf, "drifted\n") // its repair restarts the kubelet
	w.clock.Pass(7 * time.Hour)
	w.turn()
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n") // so does a change
	w.publish(bundle.ImpactRestart)
	w.turn()
	if got := w.turn(); got.State != published.StateApplied || got.Crashed != nil {
		t.Fatalf("%s %s, crashed %q", got.State, got.Message, got.Crashed)
	}
	w.cluster.events = nil
	for range 2 {
		crash()
		w.turn()
	}
	w.publish(bundle.ImpactDrain) // the permission for the same bundle changes
	if got := w.turn(); !slices.Equal(got.Crashed, []string{"kubelet"}) {
		t.Errorf("with another permission: crashed %q", got.Crashed)
	}
	w.restart() // another process knows it from the report
	for range 2 {
		if got := w.turn(); got.State != published.StateApplied || !slices.Equal(got.Crashed, []string{"kubelet"}) {
			t.Errorf("%s, crashed %q", got.State, got.Crashed)
		}
	}
	if e := w.cluster.events; len(e) != 1 || e[0].Reason != EventCrashed || !e[0].Warning || !strings.Contains(e[0].Message, "kubelet") {
		t.Errorf("events %+v", e)
	}
	if s := w.cluster.reports[len(w.cluster.reports)-1]; !strings.Contains(s.Message, "kubelet") {
		t.Errorf("condition %q", s.Message)
	}
	w.cluster.node.Retry = "1" // a person has looked at it
	if got := w.turn(); got.Crashed != nil || got.Retry != "1" {
		t.Errorf("after the retry: crashed %q", got.Crashed)
	}
	crash()
	w.turn()
	w.change(mirrors, "changed\n")
	w.publish(bundle.ImpactNone)
	if got := w.turn(); got.State != published.StateApplied || got.Crashed != nil {
		t.Errorf("with another bundle: %s, crashed %q", got.State, got.Crashed)
	}
}

// TestDriftWaitsForTheNode: a node may be paused, so nothing is repaired after a start before the Node was read, unless it cannot be read.
func TestDriftWaitsForTheNode(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	// unread starts a process that has not read the Node.
	unread := func() {
		t.Helper()
		w.host.Falsify(mirrors, "by hand\n")
		w.restart()
		w.node, w.known = Node{}, false
		if err := w.runDueWork(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.file(mirrors); got != "by hand\n" {
			t.Fatalf("before the Node was read, it is %q", got)
		}
	}
	unread()
	w.cluster.node.Paused = true
	if w.turn(); w.file(mirrors) != "by hand\n" {
		t.Error("the drift of a paused node is repaired")
	}
	unread()
	w.cluster.node.Paused = false
	if w.turn(); w.file(mirrors) == "by hand\n" {
		t.Error("the drift of a node that was read is not repaired")
	}
	unread()
	w.clock.Pass(readWithin)
	if err := w.runDueWork(t.Context()); err != nil || w.file(mirrors) == "by hand\n" {
		t.Errorf("while the API server is away: %q, %v", w.file(mirrors), err)
	}
}

// TestTheRepairComesFirst: the Node is read while the comparison after the start still waits for it, and it wants another bundle.
func TestTheRepairComesFirst(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.change(mirrors, "published\n")
	w.publish(bundle.ImpactNone) // the drift alone needs more
	w.host.Falsify(kubeletConf, "by hand\n")
	w.restart()
	var log strings.Builder
	w.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.node, w.known = Node{}, false
	w.Engine.Host = &watched{Host: w.host, called: func() { w.setNode(w.cluster.node, w.changed) }}
	if err := w.runDueWork(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.file(mirrors) == "published\n" {
		t.Error("the bundle was followed before the host was repaired")
	}
	if got := w.turn(); got.State != published.StateApplied || w.file(mirrors) != "published\n" || w.file(kubeletConf) == "by hand\n" {
		t.Errorf("%s: %s", got.State, got.Message)
	}
	for _, entry := range []string{kubeletConf, mirrors} {
		if !strings.Contains(log.String(), "msg=action verb=write entry="+strconv.Quote("file "+entry)) {
			t.Errorf("%s is not in the log:\n%s", entry, log.String())
		}
	}
}

// watched calls before every reading of files.
type watched struct {
	applier.Host
	called func()
}

func (w *watched) Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error) {
	w.called()
	return w.Host.Stat(ctx, paths)
}

// TestAChangeThatNeedsADrain is not made with less than that permission, and reboots nothing.
func TestAChangeThatNeedsADrain(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	before := w.file(kubeletConf)
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Files[kubeletConf] = "kind: KubeletConfiguration\nmaxPods: 1\n"
		n.Impacts = map[string]bundle.Impact{kubeletConf: bundle.ImpactDrain}
	})
	w.host.ClearLog()
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactDrain || w.file(kubeletConf) != before || w.starts("kubelet") != 0 {
		t.Fatalf("without a drain: %s, needs %s, %d starts", got.State, got.Impact, w.starts("kubelet"))
	}
	boots := w.clock.SinceBoot()
	d := w.publish(bundle.ImpactDrain)
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle || w.file(kubeletConf) == before || w.starts("kubelet") != 1 {
		t.Errorf("after the drain: %s %s, %d starts", got.State, got.Message, w.starts("kubelet"))
	}
	if w.clock.SinceBoot() < boots {
		t.Error("the host has booted")
	}
}
