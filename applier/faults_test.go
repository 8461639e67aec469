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

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/hosttest/bundletest"
	"wmco/applier/hosttest/simulation"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

const (
	ledgerPath  = plan.StateFolder + `\ledger.json`
	journalPath = plan.StateFolder + `\journal.json`
	cachePath   = plan.StateFolder + `\cache.json`
)

// TestHostFaults lets something go wrong that ends by itself: the machine is then as it was, or the bundle is there;
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
			_, err := m.apply(t, next, applier.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("error %v does not name %q", err, tt.names)
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

// TestACorruptContentIsAskedForAgain damages what the machine keeps; a repair that needs it says so before anything stops.
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
	_, err = m.apply(t, n, applier.Options{LockWait: time.Second})
	var locked *applier.LockedError
	if !errors.As(err, &locked) || locked.Owner != "somebody else" {
		t.Errorf("%v", err)
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
	if err != nil || o.Result != applier.ResultPlanned || o.Total == 0 {
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
	e.Emit = func(ev applier.Event) {
		if ev.Event == applier.EventAction && ev.Done == 5 {
			cancel()
		}
	}
	seen := m.observe(t, n)
	_, err := e.Apply(ctx, reader(t, n, seen.Missing), applier.Options{})
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

func TestCleanupKeepsUnmanagedEntries(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.edit(func(s *simulation.State) {
		s.Put(plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of([]byte("first CA"))), Value: "first CA", Present: true})
	})
	m.Place(`C:\k\foreign.txt`, bundle.AccessUsers, "not ours")
	want := m.place()
	m.mustApply(t, n)
	m.Place(`C:\k\kubeconfig`, bundle.AccessUsers, "written by the kubelet")
	m.Place(`C:\var\lib\kubelet\pki\x.pem`, bundle.AccessUsers, "written by the kubelet")
	start := m.copy()
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	got := m.Snapshot()
	for path, f := range got.Files {
		if f.Kind == plan.FileRegular && !strings.HasSuffix(path, "foreign.txt") && path != plan.LockFile {
			t.Errorf("%s stays", path)
		}
	}
	if diff := differs(want, withoutFolders(m.place(), want)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Cut anywhere and done again, it ends the same.
	for step := 0; ; step += 3 {
		m := start.copy()
		m.CutAt(step)
		if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err == nil {
			break
		}
		m.Revive()
		if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if diff := differs(got, m.Snapshot()); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
	}
}

// withoutFolders drops folders that are only in one.
func withoutFolders(s, like simulation.Snapshot) simulation.Snapshot {
	for path, f := range s.Files {
		if _, ok := like.Files[path]; !ok && f.Kind == plan.FileDirectory {
			delete(s.Files, path)
		}
	}
	return s
}

func TestStateOfAnotherClusterIsRemovedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	stale := []string{`C:\k\kubeconfig`, `C:\var\lib\kubelet\pki\kubelet.pem`}
	for _, tt := range []struct {
		name  string
		start func(*testing.T, *machine)
		apply node
		gone  bool
	}{
		{"our records name another cluster", func(t *testing.T, m *machine) { m.mustApply(t, newNode()) }, newNode().Changed(func(n *node) { n.Cluster = "red" }), true},
		{"our records name this cluster", func(t *testing.T, m *machine) { m.mustApply(t, newNode()) }, newNode(), false},
		{"the host has yet to join and has no records", func(*testing.T, *machine) {}, newNode().Changed(func(n *node) { n.Stage = bundle.StageJoin }), true},
		{"the host is a node already and has no records", func(*testing.T, *machine) {}, newNode(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			tt.start(t, m)
			for _, path := range stale {
				m.Place(path, bundle.AccessUsers, "old")
			}
			m.edit(func(s *simulation.State) {
				s.Facts.Networks = append(s.Facts.Networks, bundle.HNSNetwork{Name: bundletest.Network})
			})
			start := m.copy()
			m.mustApply(t, tt.apply)
			if f := m.Snapshot().Facts; (f.Network(bundletest.Network).Name == "") != tt.gone {
				t.Errorf("networks: %+v", f.Networks)
			}
			for _, path := range stale {
				if _, there := m.Contents(path); there == tt.gone {
					t.Errorf("%s is there: %t", path, there)
				}
			}
			// Once it has joined, its own state stays, whatever was cut.
			for step := 0; step < 60; step += 4 {
				m := start.copy()
				m.applyCut(t, tt.apply, step)
				m.Revive()
				m.mustApply(t, tt.apply)
				if f := m.Snapshot().Facts; (f.Network(bundletest.Network).Name == "") != tt.gone {
					t.Errorf("cut at %d: networks: %+v", step, f.Networks)
				}
				if _, there := m.Contents(stale[0]); there == tt.gone {
					t.Errorf("cut at %d: %s is there: %t", step, stale[0], there)
				}
				m.Place(stale[0], bundle.AccessUsers, "new")
				m.mustApply(t, tt.apply)
				if _, there := m.Contents(stale[0]); !there {
					t.Errorf("cut at %d: the new state is gone", step)
				}
			}
		})
	}
}

func TestChangesThatNeedARebootWaitForIt(t *testing.T) {
	t.Parallel()
	m := newMachine()
	n := newNode().Changed(func(n *node) {
		n.Features, n.HostName = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactReboot}}, "win-new"
	})
	o, err := m.apply(t, n, applier.Options{Reboot: true})
	if err != nil || o.Result != applier.ResultReboot {
		t.Fatalf("%v, %+v", err, o)
	}
	if m.Snapshot().RebootAsked == "" {
		t.Error("no reboot was asked for")
	}
	// Until the boot happens, each run does nothing.
	steps := m.Steps()
	if o, err := m.repair(t.Context()); err != nil || o.Result != applier.ResultReboot || m.Steps() != steps {
		t.Errorf("%v, %+v, %d steps", err, o, m.Steps()-steps)
	}
	m.boot()
	m.mustApply(t, n)
	if s := m.Snapshot(); s.HostName != "win-new" || s.Services["kubelet"].Status != plan.ServiceRunning {
		t.Errorf("%+v", s)
	}
	if o := m.observe(t, n); !o.InSync || len(o.RebootPending) > 0 {
		t.Errorf("%+v", o)
	}
}

// bootNode needs a boot before its services can run.
func bootNode() node {
	return newNode().Changed(func(n *node) { n.Features = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactReboot}} })
}

func TestServicesThatTheBootStartsMustBeHealthy(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), bootNode()
	if o, err := m.apply(t, n, applier.Options{}); err != nil || o.Result != applier.ResultReboot {
		t.Fatalf("%v, %+v", err, o)
	}
	m.edit(func(s *simulation.State) {
		s.Script.Probes = []simulation.SilentProbe{{Target: "http://127.0.0.1/kubelet"}}
	})
	m.boot()
	o, err := m.apply(t, n, applier.Options{})
	var back *applier.RolledBackError
	if !errors.As(err, &back) {
		t.Fatalf("%v, %+v", err, o)
	}
	// The feature goes with the next boot, and the result says so.
	if diff := cmp.Diff([]bundle.EntryID{"feature Containers"}, o.RebootPending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

// A boot that was awaited is not needed any more: the services that wait for it start.
func TestARunDoesNotWaitForARebootThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	m := newMachine()
	if o, err := m.apply(t, newNode().Changed(func(n *node) { n.HostName = "win-new" }), applier.Options{}); err != nil || o.Result != applier.ResultReboot {
		t.Fatalf("%v, %+v", err, o)
	}
	if o := m.mustApply(t, newNode()); o.Result != applier.ResultApplied {
		t.Errorf("%+v", o)
	}
	for _, name := range []string{"containerd", "kubelet"} {
		if s := m.Snapshot().Services[name]; s.Status != plan.ServiceRunning {
			t.Errorf("service %s is %s", name, s.Status)
		}
	}
}

func TestARebootAboveTheAllowedImpactIsNotDone(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), bootNode()
	if _, err := m.apply(t, n, applier.Options{}); err != nil {
		t.Fatal(err)
	}
	o, err := m.apply(t, n, applier.Options{MaxImpact: bundle.ImpactRestart, Reboot: true})
	if err != nil || o.Result != applier.ResultReboot || m.Snapshot().RebootAsked != "" {
		t.Errorf("%v, %+v, reboot asked: %q", err, o, m.Snapshot().RebootAsked)
	}
}

func TestRepairWithoutTheStateFolder(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	for path := range m.Snapshot().Files {
		if strings.HasPrefix(path, plan.StateFolder+`\contents`) {
			m.Discard(path)
		}
	}
	if o, err := m.repair(t.Context()); err != nil || o.Result != applier.ResultSame {
		t.Errorf("%v, %+v", err, o)
	}
	m.Discard(`C:\k\kubelet.conf`)
	if o, err := m.repair(t.Context()); err != nil || o.Written != 1 {
		t.Errorf("%v, %+v", err, o)
	}
}

// A file that was changed with the same size and time is found by verify, and fixed by the next run.
func TestVerifyCorrectsTheCache(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.clock.Jump(100 * time.Second)
	m.mustApply(t, n)
	const path = `C:\k\kubelet.conf`
	before, _ := m.Contents(path)
	m.Falsify(path, strings.Repeat("x", len(before)))
	if o := m.observe(t, n); !o.InSync {
		t.Fatalf("it is seen at once: %+v", o)
	}
	o, err := m.engine().Verify(t.Context(), reader(t, n, nil))
	if err != nil || o.InSync {
		t.Fatalf("%v, %+v", err, o)
	}
	if o := m.mustApply(t, n); o.Written != 1 {
		t.Errorf("%+v", o)
	}
}

func TestServicesDoNotGetARemovedProxy(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	none := n.Changed(func(n *node) { n.SecretProxy, n.Proxy = "", nil })
	m.mustApply(t, none)
	if got := m.Snapshot().Services["kubelet"].Delivered; len(got) > 0 {
		t.Errorf("hidden, though they came after the boot: %v", got)
	}
	m.mustApply(t, n)
	m.boot()
	m.mustApply(t, none)
	want := []string{"HTTP_PROXY=", "NO_PROXY="}
	if got := m.Snapshot().Services["kubelet"].Delivered; !slices.Equal(got, want) {
		t.Errorf("before the boot %v", got)
	}
	m.boot()
	o := m.mustApply(t, none)
	if o.Restarted > 0 {
		t.Errorf("%d restarts only to drop what hides variables of the last boot", o.Restarted)
	}
	if got := m.Snapshot().Services["kubelet"].Environment; len(got) > 0 {
		t.Errorf("after the boot %v", got)
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

// TestPartsThatDoNotFitAreSentAgain resumes an upload whose first part became corrupt meanwhile.
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
			m.Place(first+second, bundle.AccessAdmins, "rotten")
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
