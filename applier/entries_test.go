package applier_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// A file that is right and that another program has open is as good as one that can be read.
func TestAFileThatAnotherProgramHasOpenStopsNothing(t *testing.T) {
	t.Parallel()
	const path = `C:\k\containerd\containerd_conf.toml`
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.edit(func(s *simulation.State) { s.Script.Locked = []string{path} })
	m.Discard(`C:\k\kubelet.conf`)
	noted := func(notes []string) bool { return strings.Contains(strings.Join(notes, "\n"), path+" is locked") }
	o, err := m.engine().Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), true)
	if err != nil || len(o.Actions) != 3 || !noted(o.Notes) {
		t.Errorf("observe: %v, %+v", err, o)
	}
	if o, err := m.repair(t.Context()); err != nil || o.Written != 1 {
		t.Errorf("repair: %v, %+v", err, o)
	}
	if o, err := m.engine().Apply(t.Context(), n.Manifest(t), reader(t, n, nil), applier.Options{Full: true}); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("apply: %v, %+v", err, o)
	}
	// It has to change: that cannot be done, and no service stops for it.
	next := n.Changed(func(n *node) { n.Files[path] = "version = 5\n" })
	m.ClearLog()
	var file *applier.FileError
	if _, err := m.apply(t, next, applier.Options{}); !errors.As(err, &file) || file.Reason != applier.FileLocked {
		t.Errorf("a change of it: %v", err)
	}
	if n := m.count(simulation.VerbStop, ""); n > 0 {
		t.Errorf("%d services were stopped", n)
	}
}

// unreadable is a host on which the access of a file forbids even administrators to read it.
type unreadable struct {
	*hostsim.Memory
	path string
}

func (h unreadable) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == h.path && h.Snapshot().Files[path].Access == plan.AccessOther {
		return nil, &applier.FileError{Path: path, Reason: applier.FileDenied, Err: errors.New("access denied")}
	}
	return h.Memory.Open(ctx, path)
}

func TestAFileThatNobodyMayReadIsReplaced(t *testing.T) {
	t.Parallel()
	const path = `C:\k\containerd\containerd_conf.toml`
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.SetAccess(path, plan.AccessOther)
	e := m.engine()
	e.Host = unreadable{m.Memory, path}
	if o, err := e.Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), true); err != nil || o.InSync {
		t.Errorf("observe: %v, %+v", err, o)
	}
	if o, err := e.Repair(t.Context(), applier.Options{}); err != nil || o.Written != 1 {
		t.Errorf("repair: %v, %+v", err, o)
	}
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o)
	}
}

// count is the number of operations so far.
func (m *machine) count(verb simulation.Verb, target string) int {
	n := 0
	for _, op := range m.Log() {
		if op.Verb == verb && (target == "" || op.Target == target) {
			n++
		}
	}
	return n
}

// drifted is a host on which a file that the kubelet reads differs and cannot be written, and another one that can.
func drifted(t *testing.T) (*machine, node) {
	t.Helper()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "drift")
	m.Discard(`C:\k\containerd\registries\a.io\hosts.toml`)
	m.edit(func(s *simulation.State) { s.Script.Denied = []string{`C:\k\kubelet.conf`} })
	m.ClearLog()
	return m, n
}

func TestRepairGoesEntryByEntry(t *testing.T) {
	t.Parallel()
	m, n := drifted(t)
	o, err := m.repair(t.Context())
	var partial *applier.PartialError
	if !errors.As(err, &partial) || o.Result != protocol.ResultPartial || !strings.Contains(err.Error(), `file C:\k\kubelet.conf`) {
		t.Errorf("%v, %+v", err, o)
	}
	if _, there := m.Contents(`C:\k\containerd\registries\a.io\hosts.toml`); !there {
		t.Error("the other file was not repaired")
	}
	if n := m.count(simulation.VerbStop, "") + m.count(simulation.VerbStart, ""); n > 0 {
		t.Errorf("services were stopped for a file that could not be written: %v", m.Log())
	}
	if seen := m.observe(t, n); seen.Interrupted != "" || len(seen.Actions) == 0 {
		t.Errorf("%+v", seen)
	}
	m.edit(func(s *simulation.State) { s.Script = simulation.Script{} })
	if o, err := m.repair(t.Context()); err != nil || o.Written != 1 || o.Restarted != 1 {
		t.Errorf("%v, %+v", err, o)
	}
	if seen := m.observe(t, n); !seen.InSync {
		t.Errorf("%+v", seen)
	}
}

// TestWhatCannotBeRepairedBacksOff runs the repairs of an agent for a day: one engine, a turn each minute.
func TestWhatCannotBeRepairedBacksOff(t *testing.T) {
	t.Parallel()
	m, n := drifted(t)
	e := m.engine()
	turn := func() (tries int, err error) {
		before := m.count(simulation.VerbWrite, `C:\k\kubelet.conf`)
		_, err = e.Repair(t.Context(), applier.Options{})
		m.clock.Jump(time.Minute)
		return m.count(simulation.VerbWrite, `C:\k\kubelet.conf`) - before, err
	}
	var tried []int
	why := ""
	for minute := range 24 * 60 {
		tries, err := turn()
		if err == nil {
			t.Fatalf("minute %d: not reported", minute)
		}
		if why != "" && err.Error() != why {
			t.Errorf("minute %d: the report changes from %q to %q", minute, why, err)
		}
		if why = err.Error(); tries > 0 {
			tried = append(tried, minute)
		}
	}
	for i, want := range []int{0, 1, 3, 7, 15, 31, 63, 123, 183} {
		if tried[i] != want {
			t.Fatalf("tried in the minutes %v", tried)
		}
	}
	if n := m.count(simulation.VerbStop, ""); n > 0 {
		t.Errorf("%d services were stopped", n)
	}
	// It is repaired within the hour, also if the clock is set back.
	m.edit(func(s *simulation.State) { s.Script = simulation.Script{} })
	m.clock.Jump(-48 * time.Hour)
	if _, err := turn(); err != nil {
		t.Error(err)
	}
	if seen := m.observe(t, n); !seen.InSync {
		t.Errorf("%+v", seen)
	}
}

// A corrupt kept content keeps nothing else from being repaired.
func TestRepairGoesOnBesideACorruptContent(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	const bad, good = `C:\k\kubelet.conf`, `C:\k\containerd\containerd_conf.toml`
	m.Place(records.DirContents+`\`+plan.ContentOf([]byte(n.Files[bad])).SHA256+"-001of001", bundle.AccessAdmins, "corrupt")
	m.Discard(bad)
	m.Discard(good)
	o, err := m.repair(t.Context())
	var partial *applier.PartialError
	if !errors.As(err, &partial) || !strings.Contains(err.Error(), bad) {
		t.Errorf("%v, %+v", err, o)
	}
	if got, _ := m.Contents(good); got != n.Files[good] {
		t.Errorf("%s holds %q", good, got)
	}
	if seen := m.observe(t, n); len(seen.Missing) != 1 {
		t.Errorf("missing: %+v", seen.Missing)
	}
	m.mustApply(t, n)
}

// A service that does not start again keeps what was repaired.
func TestARepairIsNotRolledBack(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	m.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "drift")
	m.edit(func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Start: simulation.StartExits}}
	})
	o, err := m.repair(t.Context())
	var partial *applier.PartialError
	if !errors.As(err, &partial) || !strings.Contains(err.Error(), "service kubelet") {
		t.Errorf("%v, %+v", err, o)
	}
	if got, _ := m.Contents(`C:\k\kubelet.conf`); got != n.Files[`C:\k\kubelet.conf`] {
		t.Errorf("the file holds %q", got)
	}
}
