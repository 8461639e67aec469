package applier_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/simulation"
)

// TestContentsOfTwoEncodingsStopNothing continues an upload with a part of another encoding of the content: it has the right
// size, and nothing but reading all of the content shows it.
func TestContentsOfTwoEncodingsStopNothing(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{7})
	data := make([]byte, archive.PartSize+1000)
	_, _ = random.Read(data)
	n := newNode()
	next := n.Changed(func(n *node) { n.Programs[`C:\k\kubelet.exe`] = string(data) })
	start := newMachine()
	start.mustApply(t, n)
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCut(t, next, step) {
			t.Fatal("never cut between the parts")
		}
		first, second := m.partOf(1, 2), m.partOf(2, 2)
		if (first == "") == (second == "") {
			continue
		}
		whole, _ := m.Contents(first + second)
		m.Place(first+second, bundle.AccessAdmins, strings.Repeat("x", len(whole)))
		before := m.place()
		m.ClearLog()
		o, err := m.apply(t, next, applier.Options{})
		var refused *applier.RefusedError
		if !errors.As(err, &refused) || len(o.Missing) != 1 {
			t.Fatalf("%v, %+v", err, o)
		}
		for _, op := range m.Log() {
			if op.Verb == simulation.VerbStop || op.Verb == simulation.VerbStart {
				t.Errorf("%s %s", op.Verb, op.Target)
			}
		}
		if diff := differs(before, m.place()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		m.mustApply(t, next)
		return
	}
}

// corrupted is a host on which all kept contents are corrupt and a file is missing.
func corrupted(t *testing.T, n node) *machine {
	t.Helper()
	m := newMachine()
	m.mustApply(t, n)
	for path := range m.Snapshot().Files {
		if strings.HasPrefix(path, records.DirContents+`\`) {
			data, _ := m.Contents(path)
			m.Place(path, bundle.AccessAdmins, data[:len(data)-1]+"x")
		}
	}
	m.Discard(`C:\k\kubelet.conf`)
	return m
}

func TestACorruptContentIsObservedAndReplacedAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode()
	m := corrupted(t, n)
	before := m.Snapshot()
	o := m.observe(t, n)
	if want := bundle.Of([]byte(n.Files[`C:\k\kubelet.conf`])); len(o.Missing) != 1 || o.Missing[0].Digest != want {
		t.Errorf("missing: %+v, want %s", o.Missing, want)
	}
	after := m.Snapshot()
	delete(after.Files, cachePath)
	if diff := differs(before, after); diff != "" {
		t.Errorf("observing changed the host (-want +got):\n%s", diff)
	}
	m.mustApply(t, n) // sends what observe lists, once
}

// A content that the host has, and that is sent nevertheless, is not written again unless it is corrupt.
func TestAnArchiveWithAllContentsReplacesOnlyCorruptOnes(t *testing.T) {
	t.Parallel()
	n := newNode()
	m := corrupted(t, n)
	for range 2 {
		all, err := archive.NewReader(bytes.NewReader(n.Archive(t, n.Needs(t))))
		if err != nil {
			t.Fatal(err)
		}
		m.ClearLog()
		if o, err := m.engine().Apply(t.Context(), all.Manifest, all, applier.Options{}); err != nil {
			t.Fatalf("%v, %+v", err, o)
		}
	}
	for _, op := range m.Log() {
		if op.Verb == simulation.VerbWrite && strings.HasPrefix(op.Target, records.DirContents) {
			t.Errorf("%s was written again", op.Target)
		}
	}
}

// A kept file that is corrupt is found before anything stops, and is asked for.
func TestACorruptKeptFileIsAskedForAgain(t *testing.T) {
	t.Parallel()
	n := newNode()
	start := newMachine()
	start.mustApply(t, n)
	text := n.Files[`C:\k\kubelet.conf`]
	for path := range start.Snapshot().Files {
		if strings.HasPrefix(path, records.DirContents+`\`) {
			start.Discard(path)
		}
	}
	m := start.interrupted(t, n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "new" }))
	kept := records.DirPrevious + `\` + plan.ContentOf([]byte(text)).SHA256
	if _, there := m.Contents(kept); !there {
		t.Fatal("the replaced file is not kept")
	}
	m.Place(`C:\k\kubelet.conf`, bundle.AccessUsers, "new")
	m.Discard(kept)
	m.Place(kept, bundle.AccessAdmins, "corrupt")
	if o := m.observe(t, n); len(o.Missing) != 1 {
		t.Errorf("missing: %+v", o.Missing)
	}
	m.mustApply(t, n)
	if got, _ := m.Contents(`C:\k\kubelet.conf`); got != text {
		t.Errorf("the file holds %q", got)
	}
}
