package applier_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

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

// TestKeysOfTheKubeletAreForAdministrators: the kubelet makes the folder of its keys with the access of the one around it, which users read.
func TestKeysOfTheKubeletAreForAdministrators(t *testing.T) {
	t.Parallel()
	const key = plan.KubeletKeys + `\kubelet-client-current.pem`
	blue, red := newNode(), newNode().Changed(func(n *node) { n.Cluster = "red" })
	for name, bring := range map[string]func(*testing.T, *machine){
		"before the kubelet makes the folder": func(t *testing.T, m *machine) { m.mustApply(t, blue) },
		"where another operator's kubelet made it": func(t *testing.T, m *machine) {
			m.Place(key, bundle.AccessUsers, "key")
			m.mustApply(t, blue)
		},
		"where an older version of this agent left it so": func(t *testing.T, m *machine) {
			m.mustApply(t, blue)
			m.Place(key, bundle.AccessUsers, "key")
			if err := m.MakeDirectory(t.Context(), plan.KubeletKeys, bundle.AccessUsers); err != nil {
				t.Fatal(err)
			}
			if o := m.observe(t, blue); o.InSync {
				t.Error("nothing differs")
			}
			if _, err := m.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"after the keys of another cluster were removed": func(t *testing.T, m *machine) {
			m.mustApply(t, blue)
			m.Place(key, bundle.AccessAdmins, "key")
			m.mustApply(t, red)
			if _, there := m.Contents(key); there {
				t.Error("the key of another cluster stays")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			bring(t, m)
			if f := m.Snapshot().Files[plan.KubeletKeys]; f.Kind != plan.FileDirectory || f.Access != bundle.AccessAdmins {
				t.Errorf("%+v", f)
			}
			if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
				t.Fatal(err)
			}
			if f, there := m.Snapshot().Files[plan.KubeletKeys]; there {
				t.Errorf("it stays after a cleanup: %+v", f)
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
	if err != nil || o.Result != protocol.ResultReboot {
		t.Fatalf("%v, %+v", err, o)
	}
	if m.Snapshot().RebootAsked == "" {
		t.Error("no reboot was asked for")
	}
	// Until the boot happens, each run does nothing.
	steps := m.Steps()
	if o, err := m.repair(t.Context()); err != nil || o.Result != protocol.ResultReboot || m.Steps() != steps {
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
	if o, err := m.apply(t, n, applier.Options{}); err != nil || o.Result != protocol.ResultReboot {
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
	// The feature goes with the next boot, and the result has that.
	if diff := cmp.Diff([]bundle.EntryID{"feature Containers"}, o.RebootPending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

// A boot that was awaited is not needed any more: the services that wait for it start.
func TestARunDoesNotWaitForARebootThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	m := newMachine()
	if o, err := m.apply(t, newNode().Changed(func(n *node) { n.HostName = "win-new" }), applier.Options{}); err != nil || o.Result != protocol.ResultReboot {
		t.Fatalf("%v, %+v", err, o)
	}
	if o := m.mustApply(t, newNode()); o.Result != protocol.ResultApplied {
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
	if err != nil || o.Result != protocol.ResultReboot || m.Snapshot().RebootAsked != "" {
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
	if o, err := m.repair(t.Context()); err != nil || o.Result != protocol.ResultSame {
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
	o, err := m.engine().Verify(t.Context(), n.Manifest(t), reader(t, n, nil).Contents())
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
