package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// TestARunThatWasInterruptedBehindItsLedgerHasFinished cuts a run between the last two things that it does: it has written the
// ledger, and the journal is still there.
func TestARunThatWasInterruptedBehindItsLedgerHasFinished(t *testing.T) {
	t.Parallel()
	n := newNode()
	next := n.Changed(func(n *node) { n.CAs = append(n.CAs, "third CA"); n.Files[`C:\k\kubelet.conf`] = "next" })
	start := newMachine()
	start.edit(func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Needs: lacksBad}}
	})
	bare := start.place()
	start.mustApply(t, n)
	digest := next.Bundle(t)
	want, err := digest.Digest()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCut(t, next, step) {
			break
		}
		journal, there := m.Contents(journalPath)
		ledger, _ := m.Contents(ledgerPath)
		if !there || !strings.Contains(ledger, string(want)) {
			continue
		}
		found++
		if o := m.observe(t, next); !o.InSync || o.Interrupted != "" {
			t.Errorf("observed: %+v", o)
		}
		applied := m.place()
		failing := m.copy()
		var back *applier.RolledBackError
		if _, err := failing.apply(t, next.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" }), applier.Options{}); !errors.As(err, &back) {
			t.Errorf("a failing bundle: %v", err)
		}
		if diff := differs(applied, failing.place()); diff != "" {
			t.Errorf("rolled back to the bundle before the last (-want +got):\n%s", diff)
		}
		repaired := m.copy()
		if o, err := repaired.repair(t.Context()); err != nil || o.Result != protocol.ResultSame {
			t.Errorf("%v, %+v", err, o)
		}
		if _, there := repaired.Contents(journalPath); there {
			t.Error("the journal is still there")
		}
		if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
			t.Error(err)
		}
		if diff := differs(bare, withoutFolders(m.place(), bare)); diff != "" {
			t.Errorf("after a cleanup, with journal %.80s (-want +got):\n%s", journal, diff)
		}
	}
	if found == 0 {
		t.Error("no cut is between ledger and journal")
	}
}

// A repair of the bundle that is in the ledger has not finished because the ledger names the bundle.
func TestAnInterruptedRepairIsResumed(t *testing.T) {
	t.Parallel()
	n := newNode()
	start := newMachine()
	start.mustApply(t, n)
	want := start.place()
	start.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "drift")
	start.Place(`C:\k\containerd\containerd_conf.toml`, bundle.AccessUsers, "drift")
	for step := 0; ; step++ {
		m := start.copy()
		m.CutAt(step)
		if _, err := m.repair(t.Context()); err == nil {
			break
		}
		m.Revive()
		if _, err := m.repair(t.Context()); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if diff := differs(want, m.place()); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		// The kubelet runs with the contents of its file: it was started after the file was written.
		if !m.startedAfter(`C:\k\kubelet.conf`, "kubelet") {
			t.Fatalf("step %d: the kubelet runs with the old file: %v", step, m.Log())
		}
	}
}

// startedAfter reports whether a service was started after a file was last written.
func (m *machine) startedAfter(path, service string) bool {
	written, started := -1, -1
	for i, op := range m.Log() {
		switch {
		case op.Verb == simulation.VerbWrite && op.Target == path:
			written = i
		case op.Verb == simulation.VerbStart && op.Target == service:
			started = i
		}
	}
	return started > written
}

// TestCleanupAfterACutLeavesNothing kills an application at every step, and cleans up.
func TestCleanupAfterACutLeavesNothing(t *testing.T) {
	t.Parallel()
	n := newNode()
	for step := 0; ; step++ {
		m := newMachine()
		if !m.applyCut(t, n, step) {
			break
		}
		if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		for path, f := range m.Snapshot().Files {
			if f.Kind == plan.FileRegular || strings.HasPrefix(path, `C:\k`) {
				t.Fatalf("step %d: %s stays: %+v", step, path, f)
			}
		}
	}
}

// TestAbandonedContentsGoWithTheNextRun leaves contents of a bundle that never comes again.
func TestAbandonedContentsGoWithTheNextRun(t *testing.T) {
	t.Parallel()
	n := newNode()
	start := newMachine()
	start.mustApply(t, n)
	kept, digest := start.contents(), start.observe(t, n).Applied
	other := n.Changed(func(n *node) { n.Secrets[`C:\k\bootstrap-kubeconfig`] = "sesame-abandoned" })
	abandoned := 0
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCut(t, other, step) {
			break
		}
		if _, there := m.Contents(journalPath); there || m.contents() == kept || m.observe(t, n).Applied != digest {
			continue
		}
		abandoned++
		late := m.copy()
		if _, err := late.repair(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late.contents() == kept {
			t.Errorf("step %d: an upload that may go on was removed by a repair", step)
		}
		late.clock.Jump(2 * 3600e9)
		if _, err := late.repair(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.mustApply(t, n)
		for name, x := range map[string]*machine{"an application": m, "a late repair": late} {
			if got := x.contents(); got != kept {
				t.Errorf("step %d: after %s: %s", step, name, got)
			}
		}
	}
	if abandoned == 0 {
		t.Error("no cut leaves a content")
	}
}

// contents are the names of the contents that are kept.
func (m *machine) contents() string {
	var names []string
	infos, err := m.List(context.Background(), records.DirContents)
	if err != nil {
		panic(err)
	}
	for _, f := range infos {
		if !plan.IsLeftover(f.Path) {
			names = append(names, bundle.Base(f.Path))
		}
	}
	return strings.Join(names, " ")
}
