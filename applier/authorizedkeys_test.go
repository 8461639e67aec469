package applier_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// Keys of which there is no private half.
const (
	keyOld   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	keyNew   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
	keyOther = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAC"
)

// accept has the host accept a key without the applier.
func (m *machine) accept(t *testing.T, line string) {
	t.Helper()
	fingerprint, err := bundle.Fingerprint(line)
	if err != nil {
		t.Fatal(err)
	}
	m.edit(func(s *simulation.State) {
		s.Put(plan.Setting{Kind: bundle.KindAuthorizedKey, Name: fingerprint, Value: line, Present: true})
	})
}

// accepted returns the keys that the host accepts, sorted.
func (m *machine) accepted() []string {
	var lines []string
	for _, s := range m.Snapshot().Settings {
		if s.Kind == bundle.KindAuthorizedKey {
			lines = append(lines, s.Value)
		}
	}
	return slices.Sorted(slices.Values(lines))
}

// TestAKeyIsExchangedWithoutARestart: the key that the user installed is managed once a bundle has it, that of an administrator is not. The last
// managed key stays, whatever is applied, and also when the host is cleaned up: without one, no login to it would work any longer.
func TestAKeyIsExchangedWithoutARestart(t *testing.T) {
	m, n := newMachine(), newNode()
	m.accept(t, keyOld)
	m.accept(t, keyOther)
	m.mustApply(t, n)
	for _, step := range []struct {
		name         string
		bundle, want []string
	}{
		{"the key that the host accepts", []string{keyOld}, []string{keyOld, keyOther}},
		{"a new one beside it", []string{keyNew, keyOld}, []string{keyOld, keyNew, keyOther}},
		{"the new one alone", []string{keyNew}, []string{keyNew, keyOther}},
		{"none", nil, []string{keyNew, keyOther}},
		{"it again", []string{keyNew}, []string{keyNew, keyOther}},
	} {
		n.Keys = step.bundle
		o := m.observe(t, n)
		if o.Impact != bundle.ImpactNone || len(o.Restarts) > 0 {
			t.Errorf("%s: impact %s, restarts %v", step.name, o.Impact, o.Restarts)
		}
		m.mustApply(t, n)
		if diff := cmp.Diff(step.want, m.accepted()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if o := m.observe(t, n); len(o.Actions) > 0 {
			t.Errorf("%s: applied, and there is still to do %v", step.name, o.Actions)
		}
	}
	if out, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil || out.Result != protocol.ResultApplied {
		t.Fatalf("%+v, %v", out, err)
	}
	if diff := cmp.Diff([]string{keyNew, keyOther}, m.accepted()); diff != "" {
		t.Errorf("cleaned up (-want +got):\n%s", diff)
	}
}
