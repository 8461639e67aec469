package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

const (
	resumedFile  = `C:\k\kubelet.conf`
	resumedOther = `C:\k\containerd\containerd_conf.toml`
)

// draining is a change that drains, and one that could.
func draining(n node) node {
	return n.Changed(func(n *node) {
		n.Files[resumedFile] = "changed"
		n.Impacts = map[string]bundle.Impact{resumedFile: bundle.ImpactDrain, resumedOther: bundle.ImpactReboot}
	})
}

// applyKilled applies a bundle until the process is killed when it has written a file.
func (m *machine) applyKilled(t *testing.T, n node, file string, o applier.Options) {
	t.Helper()
	seen := m.observe(t, n)
	m.Faults.After = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbWrite && strings.EqualFold(op.Target, file) {
			m.CutAt(0)
		}
		return nil
	}
	_, err := m.engine().Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), o)
	if !errors.Is(err, hostsim.ErrCut) {
		t.Fatalf("it was not killed: %v", err)
	}
	m.Faults.After = nil
	m.Revive()
}

// TestAPermissionHoldsForTheProcessThatResumes: what was allowed for the run is, what costs more changes nothing and rolls nothing
// back.
func TestAPermissionHoldsForTheProcessThatResumes(t *testing.T) {
	t.Parallel()
	next := draining(newNode())
	for _, tt := range []struct {
		name          string
		allowed, also bundle.Impact
		drift         bool
		refused       bundle.Impact
	}{
		{"allowed when it began", bundle.ImpactDrain, bundle.ImpactRestart, false, ""},
		{"everything was allowed", "", bundle.ImpactNone, true, ""},
		{"drift that costs more", bundle.ImpactDrain, bundle.ImpactRestart, true, bundle.ImpactReboot},
		{"drift that costs more, allowed now", bundle.ImpactDrain, bundle.ImpactReboot, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			m.mustApply(t, newNode().Changed(func(n *node) { n.Impacts = next.Impacts }))
			m.applyKilled(t, next, resumedFile, applier.Options{MaxImpact: tt.allowed})
			if tt.drift {
				m.Place(resumedOther, bundle.AccessUsers, "drifted")
			}
			before := m.Snapshot()
			o, err := m.engine().Repair(t.Context(), applier.Options{MaxImpact: tt.also, Full: true})
			var refused *applier.RefusedError
			switch {
			case tt.refused == "" && (err != nil || o.Result != protocol.ResultApplied || !o.Resumed):
				t.Errorf("%+v, %v", o, err)
			case tt.refused != "" && (!errors.As(err, &refused) || refused.Impact != tt.refused):
				t.Errorf("%+v, %v", o, err)
			case tt.refused != "" && differs(before, m.Snapshot()) != "":
				t.Errorf("the host changed: %s", differs(before, m.Snapshot()))
			}
			if _, err := m.engine().Repair(t.Context(), applier.Options{Full: true}); err != nil {
				t.Fatal(err)
			}
			if o := m.observe(t, next); !o.InSync || o.Interrupted != "" {
				t.Errorf("in the end: %+v", o)
			}
		})
	}
}

// TestARunIsConfirmedByTheProcessThatResumes kills the process before it asks for the confirmation: the next one asks.
func TestARunIsConfirmedByTheProcessThatResumes(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"confirmed": nil, "refused": errors.New("the node is not Ready")} {
		m := newMachine()
		m.mustApply(t, newNode())
		want := m.place()
		next := newNode().Changed(func(n *node) { n.Files[resumedFile] = "changed" })
		m.applyKilled(t, next, resumedFile, applier.Options{Confirmer: "somebody", ConfirmWithin: time.Hour, Confirm: func(context.Context) error { t.Error("asked too early"); return nil }})
		asked := 0
		resume := func(confirmer string) func(context.Context) error {
			if confirmer != "somebody" {
				t.Errorf("the confirmer is %q", confirmer)
			}
			return func(context.Context) error { asked++; return answer }
		}
		o, err := m.engine().Repair(t.Context(), applier.Options{Resume: resume})
		if asked != 1 || !o.Resumed {
			t.Errorf("%s: asked %d times, %+v", name, asked, o)
		}
		var back *applier.RolledBackError
		switch {
		case answer == nil && (err != nil || !m.observe(t, next).InSync):
			t.Errorf("%s: %v", name, err)
		case answer != nil && (!errors.As(err, &back) || differs(want, m.place()) != ""):
			t.Errorf("%s: %v %s", name, err, differs(want, m.place()))
		}
	}
}

// TestAnInterruptedRollbackSaysWhyItWasNecessary kills the process while it rolls back.
func TestAnInterruptedRollbackSaysWhyItWasNecessary(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	next := newNode().Changed(func(n *node) { n.Files[resumedFile] = "changed" })
	why := errors.New("the node is not Ready")
	m.applyKilled(t, next, resumedFile, applier.Options{Confirm: func(context.Context) error { return nil }})
	_, err := m.engine().Repair(t.Context(), applier.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.mustApply(t, newNode())
	seen := m.observe(t, next)
	_, err = m.engine().Apply(t.Context(), next.Manifest(t), reader(t, next, seen.Missing), applier.Options{Confirm: func(context.Context) error {
		m.CutAt(8) // behind the journal
		return why
	}})
	if !errors.Is(err, hostsim.ErrCut) {
		t.Fatal(err)
	}
	m.Revive()
	var back *applier.RolledBackError
	if _, err := m.engine().Repair(t.Context(), applier.Options{}); !errors.As(err, &back) || !strings.Contains(err.Error(), why.Error()) {
		t.Errorf("%v", err)
	}
}

// TestAnAnswerThatComesWithTheEndOfTheProcessIsNone: a caller who is asked to stop may give up waiting without an error.
func TestAnAnswerThatComesWithTheEndOfTheProcessIsNone(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	next := newNode().Changed(func(n *node) { n.Files[resumedFile] = "changed" })
	seen := m.observe(t, next)
	ctx, stop := context.WithCancel(t.Context())
	_, err := m.engine().Apply(ctx, next.Manifest(t), reader(t, next, seen.Missing), applier.Options{ConfirmWithin: time.Hour, Confirm: func(context.Context) error { stop(); return nil }})
	var partial *applier.PartialError
	if !errors.As(err, &partial) {
		t.Errorf("%v", err)
	}
	if o := m.observe(t, next); o.Interrupted == "" {
		t.Errorf("%+v", o)
	}
}
