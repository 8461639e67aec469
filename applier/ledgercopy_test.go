package applier_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

const ledgerCopy = `C:\k\` + bundle.LedgerCopy

// copied is what others see of a ledger.
type copied struct {
	Bundle  bundle.Digest
	Layers  []bundle.Digest
	Entries []struct {
		Entry  bundle.EntryID
		Digest bundle.Digest
		Found  bool
	}
}

func (m *machine) copyLedger(t *testing.T) (text string, c copied) {
	t.Helper()
	if err := m.engine().CopyLedger(t.Context(), ledgerCopy); err != nil {
		t.Fatal(err)
	}
	text, there := m.Contents(ledgerCopy)
	if !there {
		return "", c
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return text, c
}

// TestTheCopyOfTheLedgerNamesEveryEntry: the copy has each entry, those that were on the host before, and the digests of the manifest.
func TestTheCopyOfTheLedgerNamesEveryEntry(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	if text, _ := m.copyLedger(t); text != "" {
		t.Errorf("a host without a ledger has a copy of one: %s", text)
	}
	route := plan.Setting{Kind: bundle.KindRoute, Name: n.Routes[0].Destination, Present: true, Value: n.Routes[0].Via}
	if err := m.Set(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	m.mustApply(t, n)
	text, c := m.copyLedger(t)

	b := n.Bundle(t)
	digest, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digests := map[bundle.EntryID]bundle.Digest{}
	for _, f := range b.Cluster.Files {
		digests[bundle.KindFile.ID(f.Path)] = f.Digest
	}
	for _, p := range b.Cluster.Payload {
		digests[bundle.KindPayload.ID(p.Path)] = p.Digest
	}
	var want []bundle.EntryID
	for _, l := range b.Layers() {
		want = append(want, l.IDs()...)
	}
	if c.Bundle != digest || len(c.Layers) != 2 || len(c.Entries) != len(want) {
		t.Fatalf("bundle %s, %d layers, %d of %d entries", c.Bundle, len(c.Layers), len(c.Entries), len(want))
	}
	for i, e := range c.Entries {
		if e.Entry != want[i] || e.Digest != digests[e.Entry] || e.Found != (e.Entry == route.Kind.ID(route.Name)) {
			t.Errorf("%+v, want %s with %q", e, want[i], digests[want[i]])
		}
	}
	if strings.Contains(text, "sesame") {
		t.Errorf("a secret is in the copy: %s", text)
	}
	for _, sum := range secretSums(n) {
		ledger, _ := m.Contents(records.FileLedger)
		if !strings.Contains(ledger, sum) || strings.Contains(text, sum) {
			t.Errorf("the plain digest of a secret is in the copy, or not in the ledger: %s", text)
		}
	}
	if f, err := m.Stat(t.Context(), []string{ledgerCopy}); err != nil || f[0].Access != bundle.AccessAdmins {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTheCopyOfTheLedgerIsWrittenOnlyWhenItDiffers: a changed or removed copy is restored, an equal one is left alone.
func TestTheCopyOfTheLedgerIsWrittenOnlyWhenItDiffers(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	first, _ := m.copyLedger(t)
	writes := 0
	m.Faults.Before = func(o simulation.Operation) error {
		if o.Target == ledgerCopy {
			writes++
		}
		return nil
	}
	if again, _ := m.copyLedger(t); again != first || writes > 0 {
		t.Errorf("%d writes, %s", writes, again)
	}
	for name, spoil := range map[string]func(){
		"changed": func() {
			m.Place(ledgerCopy, bundle.AccessUsers, strings.Replace(first, "kubelet.conf", "kubelet.cong", 1))
		},
		"damaged": func() { m.Place(ledgerCopy, bundle.AccessUsers, "{") },
		"newer":   func() { m.Place(ledgerCopy, bundle.AccessUsers, `{"schema": 9999}`) },
		"removed": func() { must(t, m.Remove(t.Context(), ledgerCopy)) },
	} {
		spoil()
		if again, _ := m.copyLedger(t); again != first {
			t.Errorf("%s: %s", name, again)
		}
	}
	m.mustApply(t, n.Changed(func(n *node) { n.Files[`C:\k\more.conf`] = "x" }))
	if next, _ := m.copyLedger(t); !strings.Contains(next, `C:\\k\\more.conf`) || strings.Contains(first, `C:\\k\\more.conf`) {
		t.Errorf("the copy of the next ledger: %s", next)
	}
}

// TestTheLedgerIsNotCopiedBesideARun: a cleanup would not see a copy that is written while it runs. A full disk leaves the old copy.
func TestTheLedgerIsNotCopiedBesideARun(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	release, err := m.Lock(t.Context(), "somebody else")
	must(t, err)
	var locked *applier.LockedError
	if err := m.engine().CopyLedger(t.Context(), ledgerCopy); !errors.As(err, &locked) {
		t.Errorf("%v", err)
	}
	if text, there := m.Contents(ledgerCopy); there {
		t.Errorf("it was written: %s", text)
	}
	must(t, release())
	first, _ := m.copyLedger(t)
	m.mustApply(t, n.Changed(func(n *node) { n.Files[`C:\k\more.conf`] = "x" }))
	m.Faults.Before = func(o simulation.Operation) error {
		if o.Target == ledgerCopy {
			return &applier.FileError{Path: o.Target, Reason: applier.FileDiskFull, Err: errors.New("no space left")}
		}
		return nil
	}
	var full *applier.FileError
	if err := m.engine().CopyLedger(t.Context(), ledgerCopy); !errors.As(err, &full) {
		t.Errorf("%v", err)
	}
	if text, _ := m.Contents(ledgerCopy); text != first {
		t.Errorf("a part was written: %s", text)
	}
	m.Faults.Before = nil
	if text, _ := m.copyLedger(t); text == first {
		t.Error("the lock was not released")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
