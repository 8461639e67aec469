package applier_test

import (
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

const bootsFile = `C:\ProgramData\wmco\boots.json`

// reboots is how often a boot was asked for since the log was cleared.
func (m *machine) reboots() int { return m.count(simulation.VerbReboot, "") }

// bootOnce asks for a boot, and boots the machine if it is told to.
func (m *machine) bootOnce(t *testing.T, request string) (done bool) {
	t.Helper()
	m.ClearLog()
	done, err := m.engine().BootOnce(t.Context(), bundle.Of([]byte(request)), "a test", 0)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	if m.reboots() > 0 {
		m.boot()
	}
	return done
}

func TestARequestBootsTheHostOnce(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	for i, step := range []struct {
		request string
		boots   bool
	}{{"a", true}, {"a", false}, {"b", true}, {"b", false}, {"a", false}, {"c", true}, {"a", false}, {"b", false}} {
		before := m.Snapshot().Boot
		done := m.bootOnce(t, step.request)
		if booted := m.Snapshot().Boot != before; booted != step.boots || done == step.boots {
			t.Errorf("step %d, %s: booted %t, done %t", i, step.request, booted, done)
		}
	}
	if last, err := m.engine().LastBoot(t.Context()); err != nil || last != bundle.Of([]byte("c")) {
		t.Errorf("%s, %v", last, err)
	}
	if done, err := m.engine().BootOnce(t.Context(), "no digest", "", 0); err == nil || done {
		t.Error("what is no digest is a request")
	}
}

// TestARequestBootsTheHostOnceWhereverItIsCut: the process is killed after every step, before or after the host has booted.
func TestARequestBootsTheHostOnceWhereverItIsCut(t *testing.T) {
	t.Parallel()
	start := newMachine()
	start.mustApply(t, newNode())
	start.ClearLog()
	for cut := 0; ; cut++ {
		m := start.copy()
		before := m.Snapshot().Boot
		m.CutAt(cut)
		_, err := m.engine().BootOnce(t.Context(), bundle.Of([]byte("a")), "a test", 0)
		isCut := m.Cut()
		if !isCut && err != nil {
			t.Fatal(err)
		}
		m.Revive()
		if m.reboots() > 0 { // it boots, whatever became of the process
			m.boot()
		}
		for range 3 {
			m.bootOnce(t, "a")
		}
		if n := m.Snapshot().Boot - before; n != 1 {
			t.Errorf("killed at step %d: %d boots", cut, n)
		}
		if last, err := m.engine().LastBoot(t.Context()); err != nil || last != bundle.Of([]byte("a")) {
			t.Errorf("killed at step %d: %s, %v", cut, last, err)
		}
		if !isCut {
			if cut < 2 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
	}
}

// TestTheRecordOfBootsIsNotForOthers: one that others could have written does not count.
func TestTheRecordOfBootsIsNotForOthers(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	m.bootOnce(t, "a")
	text, _ := m.Contents(bootsFile)
	if !strings.Contains(text, string(bundle.Of([]byte("a")))) {
		t.Fatalf("the record is %s", text)
	}
	m.Place(bootsFile, bundle.AccessUsers, strings.ReplaceAll(text, string(bundle.Of([]byte("a"))), string(bundle.Of([]byte("b")))))
	if last, err := m.engine().LastBoot(t.Context()); err != nil || last != "" {
		t.Errorf("%s, %v", last, err)
	}
	m.Place(bootsFile, bundle.AccessAdmins, "{")
	if done := m.bootOnce(t, "c"); done {
		t.Error("a damaged record says that it is done")
	}
	if !slices.Contains([]bundle.Digest{bundle.Of([]byte("c"))}, lastBoot(t, m)) {
		t.Error("the boot is not recorded")
	}
}

func lastBoot(t *testing.T, m *machine) bundle.Digest {
	t.Helper()
	last, err := m.engine().LastBoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return last
}
