package applier_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
)

// newer is the node with two other executables.
func newer() node {
	return newNode().Changed(func(n *node) {
		n.Programs[`C:\k\kubelet.exe`], n.Programs[`C:\k\containerd\containerd.exe`] = "the kubelet of later", "the containerd of later"
	})
}

// stage does what the operator does: it asks for missing contents and sends them.
func (m *machine) stage(t testing.TB, n node) (applier.Outcome, error) {
	t.Helper()
	seen, err := m.engine().Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), false)
	if err != nil {
		return applier.Outcome{}, err
	}
	return m.engine().Stage(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), time.Minute)
}

// lacks returns the executables of a node that would have to be sent.
func (m *machine) lacks(t testing.TB, n node) []protocol.Missing {
	t.Helper()
	all, err := n.Bundle(t).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	executables := all.PayloadDigests()
	var list []protocol.Missing
	for _, c := range m.observe(t, n).Missing {
		if executables[c.Digest] {
			list = append(list, c)
		}
	}
	return list
}

func TestExecutablesThatCameAheadStayUntilTheyAreNeeded(t *testing.T) {
	t.Parallel()
	m, later := newMachine(), newer()
	m.mustApply(t, newNode())
	before := m.place()
	if len(m.lacks(t, later)) != 2 {
		t.Fatalf("%v are missing", m.lacks(t, later))
	}
	if o, err := m.stage(t, later); err != nil || o.Result != protocol.ResultApplied {
		t.Fatalf("%+v, %v", o, err)
	}
	if diff := cmp.Diff(before, m.place()); diff != "" {
		t.Errorf("staging changed the machine (-before +after):\n%s", diff)
	}
	if o, err := m.stage(t, later); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("the second time: %+v, %v", o, err)
	}
	// Other changes, repairs and time: each run removes the contents that nothing needs.
	m.mustApply(t, newNode().Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "another configuration" }))
	m.clock.Pass(48 * time.Hour)
	if _, err := m.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing := m.lacks(t, later); len(missing) > 0 {
		t.Fatalf("%v are missing", missing)
	}
	if o := m.mustApply(t, later); o.Result != protocol.ResultApplied {
		t.Errorf("%+v", o)
	}
	if _, ok := m.Snapshot().Files[records.FileStaged]; ok {
		t.Error("the list of staged contents stays")
	}
	m.mustApply(t, newNode())
	m.clock.Pass(2 * time.Hour)
	if _, err := m.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.lacks(t, later)) != 2 {
		t.Error("contents that nothing needs any longer are kept")
	}
}

func TestStagingThatIsInterruptedAtAnyStepIsResumed(t *testing.T) {
	t.Parallel()
	later := newer()
	start := newMachine()
	start.mustApply(t, newNode())
	before := start.place()
	for step := 1; ; step++ {
		m := start.copy()
		m.CutAt(step)
		_, err := m.stage(t, later)
		m.Revive()
		if err != nil && !errors.Is(err, hostsim.ErrCut) {
			t.Fatalf("cut at %d: %v", step, err)
		}
		if _, repaired := m.repair(t.Context()); repaired != nil {
			t.Fatalf("cut at %d: %v", step, repaired)
		}
		if _, again := m.stage(t, later); again != nil {
			t.Fatalf("cut at %d: %v", step, again)
		}
		if diff := cmp.Diff(before, m.place()); diff != "" || len(m.lacks(t, later)) > 0 {
			t.Fatalf("cut at %d: %v are missing (-before +after):\n%s", step, m.lacks(t, later), diff)
		}
		if err == nil {
			if step < 5 {
				t.Errorf("staging has %d steps", step)
			}
			return
		}
	}
}

func TestStagingSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	m, later := newMachine(), newer()
	m.mustApply(t, newNode())
	o, err := m.engine().Stage(t.Context(), later.Manifest(t), reader(t, later, nil), time.Minute)
	var refused *applier.RefusedError
	if !errors.As(err, &refused) || o.Result != protocol.ResultRefused || len(o.Missing) != 2 {
		t.Fatalf("%+v, %v", o, err)
	}
	if o, err := m.engine().Stage(t.Context(), later.Manifest(t), reader(t, later, o.Missing), time.Minute); err != nil || o.Result != protocol.ResultApplied {
		t.Errorf("%+v, %v", o, err)
	}
	if err := m.engine().Host.Write(t.Context(), records.FileStaged, bundle.AccessAdmins, strings.NewReader(`{"schema":1,"contents":["x"]}`)); err != nil {
		t.Fatal(err)
	}
	if o := m.observe(t, newNode()); !o.InSync || len(o.Notes) != 1 {
		t.Errorf("with a damaged list: %+v", o)
	}
	if o, err := m.stage(t, later); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("%+v, %v", o, err)
	}
	if o := m.observe(t, newNode()); len(o.Notes) != 0 {
		t.Errorf("%v", o.Notes)
	}
}

// oneContent is a source with one executable at most.
type oneContent struct {
	archive.Content
	stored []byte
}

func (o oneContent) Contents() []archive.Content {
	if o.stored == nil {
		return nil
	}
	return []archive.Content{o.Content}
}

func (o oneContent) Open(string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(o.stored)), nil
}

// executable returns a text as an executable of a list, and its source.
func executable(text string) (archive.Content, oneContent) {
	stored := archive.Compress([]byte(text))
	d := bundle.Of([]byte(text))
	c := archive.Content{Digest: d, SHA256: strings.TrimPrefix(string(d), "sha256:"), Size: int64(len(text)), Stored: int64(len(stored))}
	return c, oneContent{c, stored}
}

// TestExecutablesWithoutABundle come one by one. What the applied bundle has need not come, unless the host lacks it.
func TestExecutablesWithoutABundle(t *testing.T) {
	t.Parallel()
	m, later := newMachine(), newer()
	m.mustApply(t, newNode())
	before := m.place()
	for path := range m.Snapshot().Files { // an agent's own runs bring no executables, so their contents are swept
		if strings.HasPrefix(path, records.DirContents+`\`) {
			if err := m.engine().Host.Remove(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all []archive.Content
	var from []oneContent
	for _, text := range []string{"the kubelet of later", "the containerd of later", newNode().Programs[`C:\k\kube-log-runner.exe`]} {
		c, s := executable(text)
		all, from = append(all, c), append(from, s)
	}
	lacks := map[bundle.Digest]bool{}
	stage := func(s oneContent) int {
		t.Helper()
		missing, err := m.engine().StageExecutables(t.Context(), all, func(d bundle.Digest) bool { return lacks[d] }, s, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return len(missing)
	}
	if n := stage(oneContent{}); n != 2 {
		t.Errorf("%d are missing at first", n)
	}
	lacks[all[2].Digest] = true // it was damaged
	for i, want := range []int{2, 1, 0} {
		if n := stage(from[i]); n != want {
			t.Errorf("%d are missing after %d", n, i+1)
		}
	}
	if diff := cmp.Diff(before, m.place()); diff != "" {
		t.Errorf("staging changed the machine (-before +after):\n%s", diff)
	}
	if missing := m.lacks(t, later); len(missing) > 0 {
		t.Errorf("the bundle lacks %v", missing)
	}
	if o := m.mustApply(t, later); o.Result != protocol.ResultApplied {
		t.Errorf("%+v", o)
	}
}
