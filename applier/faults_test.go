package applier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/simulation"
)

const (
	ledgerPath  = plan.StateFolder + `\ledger.json`
	journalPath = plan.StateFolder + `\journal.json`
	cachePath   = plan.StateFolder + `\cache.json`
)

// TestHostFaults lets a temporary fault happen: the machine is then as it was, or the bundle is there;
// and the next run finishes.
func TestHostFaults(t *testing.T) {
	t.Parallel()
	next := newNode().Changed(changes[len(changes)-1].change)
	for _, tt := range []struct {
		name  string
		fault func(*simulation.Script)
		names string // in the error
	}{
		{"the disk is full", func(s *simulation.Script) { s.Full = []string{`C:\k`} }, "disk full"},
		{"no space for contents", func(s *simulation.Script) { s.Full = []string{plan.StateFolder} }, "disk full"},
		{"access is denied", func(s *simulation.Script) { s.Denied = []string{`C:\k\kubelet.conf`} }, `C:\k\kubelet.conf`},
		{"a file is locked", func(s *simulation.Script) { s.Locked = []string{`C:\k\containerd\containerd_conf.toml`} }, "locked"},
		{"a service hangs in its start", func(s *simulation.Script) {
			s.Services = map[string]simulation.Behaviour{"kubelet": {Start: simulation.StartHangs}}
		}, "kubelet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			m.edit(func(s *simulation.State) { tt.fault(&s.Script) })
			o, err := m.apply(t, next, applier.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("error %v does not name %q", err, tt.names)
			}
			if full := tt.names == "disk full"; errors.Is(err, applier.ErrDiskFull) != full || o.DiskFull != full {
				t.Errorf("%v: disk full %t in the event", err, o.DiskFull)
			}
			m.edit(func(s *simulation.State) { s.Script = simulation.Script{} })
			m.mustApply(t, next)
			fresh := newMachine()
			fresh.mustApply(t, next)
			if diff := differs(fresh.withoutShadows(), m.withoutShadows()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryFailingStepIsRolledBackOrResumed fails every single step once, with an error and not a death.
func TestEveryFailingStepIsRolledBackOrResumed(t *testing.T) {
	t.Parallel()
	start := newMachine()
	start.mustApply(t, newNode())
	next := newNode().Changed(changes[len(changes)-1].change)
	done := start.copy()
	done.mustApply(t, next)
	total := done.Steps()
	backs := 0
	for step := range total {
		m := start.copy()
		m.FailAt(step, &applier.FileError{Path: `C:\x`, Reason: applier.FileBroken, Err: fmt.Errorf("step %d", step)})
		_, err := m.apply(t, next, applier.Options{})
		var back *applier.RolledBackError
		switch {
		case errors.As(err, &back):
			backs++
			if diff := differs(start.place(), m.place()); diff != "" {
				t.Fatalf("step %d, rolled back (-want +got):\n%s", step, diff)
			}
		case err == nil:
			if diff := differs(done.place(), m.place()); diff != "" {
				t.Fatalf("step %d, applied (-want +got):\n%s", step, diff)
			}
		}
		m.FailAt(1<<20, nil)
		m.mustApply(t, next)
		if diff := differs(done.place(), m.place()); diff != "" {
			t.Fatalf("step %d, applied again (-want +got):\n%s", step, diff)
		}
	}
	if backs < 10 {
		t.Errorf("only %d were rolled back", backs)
	}
}

func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	next := newNode().Changed(changes[2].change)
	for _, path := range []string{ledgerPath, journalPath, cachePath} {
		for _, keep := range []int{0, 1, 40, 400} {
			t.Run(fmt.Sprintf("%s cut to %d bytes", path, keep), func(t *testing.T) {
				t.Parallel()
				m := newMachine()
				m.mustApply(t, newNode())
				m.Place(`C:\k\foreign.txt`, bundle.AccessUsers, "not ours")
				if path == journalPath {
					m.applyCut(t, next, 12)
				}
				data, ok := m.Contents(path)
				if !ok {
					data = "{}"
				}
				m.Place(path, bundle.AccessAdmins, data[:min(keep, len(data))])
				m.mustApply(t, next)
				want := newMachine()
				want.mustApply(t, next)
				want.Place(`C:\k\foreign.txt`, bundle.AccessUsers, "not ours")
				if diff := differs(want.place(), m.place()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if o := m.observe(t, next); !o.InSync || len(o.Notes) > 0 {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

func TestRecordsOfANewerProgramAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, path := range []string{ledgerPath, journalPath} {
		m := newMachine()
		m.mustApply(t, newNode())
		m.Place(path, bundle.AccessAdmins, `{"schema": 99, "new": true}`)
		before := m.Snapshot()
		_, err := m.apply(t, newNode().Changed(changes[2].change), applier.Options{})
		var newer *bundle.SchemaError
		if !errors.As(err, &newer) {
			t.Errorf("%s: %v", path, err)
		}
		if diff := differs(before, m.Snapshot()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// TestACorruptContentIsAskedForAgain damages a stored content; a repair that needs it reports that before anything stops.
func TestACorruptContentIsAskedForAgain(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	for path := range m.Snapshot().Files {
		if strings.Contains(path, `\contents\`) {
			data, _ := m.Contents(path)
			m.Place(path, bundle.AccessAdmins, data[:len(data)-1]+"x")
		}
	}
	// A file, and two services that get the same secret.
	m.Discard(`C:\k\kubelet.conf`)
	m.edit(func(s *simulation.State) {
		delete(s.Services, simulation.Key("kubelet"))
		delete(s.Services, simulation.Key("containerd"))
	})
	before := m.place()
	_, err := m.repair(t.Context())
	var refused *applier.RefusedError
	if !errors.As(err, &refused) || len(refused.Missing) != 2 {
		t.Fatalf("%v", err)
	}
	if diff := differs(before, m.place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.mustApply(t, n)
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o)
	}
}

func TestTheClockJumps(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Second, 24 * time.Hour} {
		m, n := newMachine(), newNode()
		m.mustApply(t, n)
		m.clock.Jump(jump)
		m.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "kind: KubeletConfiguratioM\n") // as long as before
		if o := m.observe(t, n); o.InSync {
			t.Errorf("a jump of %s hides a change", jump)
		}
		m.mustApply(t, n)
		if got, _ := m.Contents(`C:\k\kubelet.conf`); got != n.Files[`C:\k\kubelet.conf`] {
			t.Errorf("a jump of %s: %q", jump, got)
		}
	}
}

func TestALockIsRespected(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	release, err := m.Lock(t.Context(), "somebody else")
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.apply(t, n, applier.Options{LockWait: time.Second})
	var locked *applier.LockedError
	if !errors.As(err, &locked) || locked.Owner != "somebody else" || o.LockedBy != "somebody else" {
		t.Errorf("locked by %q: %v", o.LockedBy, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	m.mustApply(t, n)
}

func TestAPlanAboveTheAllowedImpactIsRefused(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	before := m.place()
	_, err := m.apply(t, n.Changed(changes[2].change), applier.Options{MaxImpact: bundle.ImpactNone})
	var refused *applier.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if diff := differs(before, m.place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.ClearLog()
	o, err := m.apply(t, n, applier.Options{DryRun: true})
	if err != nil || o.Result != protocol.ResultPlanned || o.Total == 0 {
		t.Errorf("%v, %+v", err, o)
	}
	if len(m.Log()) > 0 {
		t.Errorf("%v", m.Log())
	}
}

func TestAnInterruptionLeavesAJournal(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	ctx, cancel := context.WithCancel(t.Context())
	e := m.engine()
	e.Emit = func(ev protocol.Event) {
		if ev.Event == protocol.EventAction && ev.Done == 5 {
			cancel()
		}
	}
	seen := m.observe(t, n)
	_, err := e.Apply(ctx, n.Manifest(t), reader(t, n, seen.Missing), applier.Options{})
	var partial *applier.PartialError
	if !errors.As(err, &partial) {
		t.Fatalf("%v", err)
	}
	if o := m.observe(t, n); o.Interrupted == "" {
		t.Errorf("%+v", o)
	}
	m.mustApply(t, n)
}

// TestNoOutputHoldsASecret looks for secrets in everything that leaves the machine.
func TestNoOutputHoldsASecret(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	told := fmt.Sprintf("%+v %+v", m.events, m.observe(t, n.Changed(changes[4].change)))
	m.edit(func(s *simulation.State) { s.Script.Full = []string{`C:\k`} })
	_, err := m.apply(t, n.Changed(func(n *node) { n.Secrets[`C:\k\bootstrap-kubeconfig`] = "sesame-full" }), applier.Options{})
	told += fmt.Sprintf("%v %+v", err, m.events)
	for _, e := range m.events {
		if e.Action != nil {
			told += fmt.Sprintf("%+v", *e.Action)
		}
	}
	if strings.Contains(told, "sesame") {
		t.Error(told)
	}
}

func TestUnmanagedFilesAreReportedAndStay(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.Place(`C:\k\notes.txt`, bundle.AccessUsers, "not ours")
	o := m.observe(t, n)
	if !o.InSync || !slices.Equal(o.Foreign, []string{`C:\k\notes.txt`}) {
		t.Errorf("%+v", o)
	}
}

func TestUnavailableSettingsDoNotDiffer(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.edit(func(s *simulation.State) { s.Facts.DefenderRunning = false })
	m.mustApply(t, n)
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o.Actions)
	}
	m.edit(func(s *simulation.State) { s.Facts.DefenderRunning = true })
	if o := m.observe(t, n); o.InSync {
		t.Error("Defender came and nothing differs")
	}
}

// TestPartsThatDoNotFitAreSentAgain resumes an upload whose first part has become corrupt.
func TestPartsThatDoNotFitAreSentAgain(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{7})
	data := make([]byte, archive.PartSize+1000)
	_, _ = random.Read(data)
	var m *machine
	n := newNode().Changed(func(n *node) { n.Programs[`C:\k\kubelet.exe`] = string(data) })
	for step := 0; ; step++ {
		m = newMachine()
		if !m.applyCut(t, n, step) {
			t.Fatal("never cut between the parts")
		}
		first, second := m.partOf(1, 2), m.partOf(2, 2)
		if (first == "") != (second == "") {
			m.Place(first+second, bundle.AccessAdmins, "corrupt")
			break
		}
	}
	if _, err := m.apply(t, n, applier.Options{}); err == nil {
		t.Fatal("applied with a corrupt part")
	}
	m.mustApply(t, n)
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o)
	}
}

// partOf is the path of a kept part, empty if there is none.
func (m *machine) partOf(index, of int) string {
	for path := range m.Snapshot().Files {
		if p, err := archive.ParsePart(bundle.Base(path)); err == nil && p.Index == index && p.Of == of {
			return path
		}
	}
	return ""
}

// TestLargeFilesAreWrittenInParallel writes enough for several at once, one of which fails.
func TestLargeFilesAreWrittenInParallel(t *testing.T) {
	t.Parallel()
	n := newNode().Changed(func(n *node) {
		for i := range 5 {
			n.Programs[fmt.Sprintf(`C:\k\large%d.exe`, i)] = strings.Repeat(fmt.Sprint(i), 20<<20)
		}
	})
	m := newMachine()
	m.edit(func(s *simulation.State) { s.Script.Denied = []string{`C:\k\large3.exe`} })
	_, err := m.apply(t, n, applier.Options{})
	if err == nil || !strings.Contains(err.Error(), `large3.exe`) {
		t.Errorf("error %v", err)
	}
	m.edit(func(s *simulation.State) { s.Script = simulation.Script{} })
	m.mustApply(t, n)
	for path, text := range n.Programs {
		if got, _ := m.Contents(path); got != text {
			t.Errorf("%s has %d bytes, want %d", path, len(got), len(text))
		}
	}
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o)
	}
}
