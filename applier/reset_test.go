package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// joining is the bundle with which a host joins. It has no kubelet of a node.
func joining() node {
	return newNode().Changed(func(n *node) {
		n.Stage, n.Services = bundle.StageJoin, n.Services[:1]
	})
}

// TestANodeGetsNoBundleToJoinWith: it would stop what runs the node. All that compare, apply and stage refuse it, and nothing is changed.
func TestANodeGetsNoBundleToJoinWith(t *testing.T) {
	t.Parallel()
	damage := func(m *machine) { m.Place(records.FileLedger, bundle.AccessAdmins, "{") }
	for name, tt := range map[string]struct {
		has     node
		then    func(*machine)
		kubelet string
		reset   string
		refused string
	}{
		"a node": {has: named("win-a"), refused: "node win-a by the bundle that was applied last"},
		"a node of an older version, by its kubelet":  {has: newNode(), kubelet: "win-a", refused: "node win-a by the client certificate of its kubelet"},
		"a node whose name is not known":              {has: newNode(), refused: "a node by the records"},
		"a node with a damaged record":                {has: named("win-a"), then: damage, kubelet: "win-a", refused: "node win-a by the client certificate of its kubelet"},
		"the reset of another node":                   {has: named("win-a"), reset: "win-b", refused: "--reset win-a"},
		"its reset":                                   {has: named("win-a"), reset: "win-a"},
		"the reset of a node whose name is not known": {has: newNode(), reset: "win-a"},
		"a host that joins":                           {has: joining(), kubelet: "win-a"},
		"a host that joins, with a damaged record":    {has: joining(), then: damage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, tt.has)
			if tt.then != nil {
				tt.then(m)
			}
			e := m.engine()
			e.NodeName, e.Reset = func(context.Context) (string, error) { return tt.kubelet, nil }, tt.reset
			before := m.place()
			seen, observed := e.Observe(t.Context(), joining().Manifest(t), reader(t, joining(), nil).Contents(), false)
			_, staged := e.Stage(t.Context(), joining().Manifest(t), reader(t, joining(), nil), time.Minute)
			_, planned := e.Apply(t.Context(), joining().Manifest(t), reader(t, joining(), nil), applier.Options{DryRun: true})
			_, applied := e.Apply(t.Context(), joining().Manifest(t), reader(t, joining(), seen.Missing), applier.Options{})
			if tt.refused == "" {
				if err := errors.Join(observed, staged, planned, applied); err != nil {
					t.Fatal(err)
				}
				return
			}
			for what, err := range map[string]error{"observe": observed, "stage": staged, "apply --dry-run": planned, "apply": applied} {
				var refused *applier.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(refused.Why, tt.refused) || !strings.Contains(refused.Why, "fix: if the node exists, apply its own bundle") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if diff := differs(before, m.place()); diff != "" {
				t.Error("the host was changed:", diff)
			}
		})
	}
}

// TestAnInterruptedFirstRunOfANodeIsKept: the bundle of the node was being applied when the run was interrupted. What was begun with Reset is
// resumed without it.
func TestAnInterruptedFirstRunOfANodeIsKept(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, joining())
	m.applyKilled(t, named("win-a").Changed(func(n *node) { n.Files[resumedFile] = "of the node" }), resumedFile, applier.Options{})
	e := m.engine()
	var refused *applier.RefusedError
	if _, err := e.Observe(t.Context(), joining().Manifest(t), reader(t, joining(), nil).Contents(), false); !errors.As(err, &refused) || !strings.Contains(refused.Why, "node win-a by the bundle of an interrupted run") {
		t.Error(err)
	}
	e.Reset = "win-a"
	seen, err := e.Observe(t.Context(), joining().Manifest(t), reader(t, joining(), nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	m.Faults.After = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbWrite && strings.EqualFold(op.Target, resumedFile) {
			m.CutAt(0)
		}
		return nil
	}
	if _, err := e.Apply(t.Context(), joining().Manifest(t), reader(t, joining(), seen.Missing), applier.Options{}); !errors.Is(err, hostsim.ErrCut) {
		t.Fatal(err)
	}
	m.Faults.After = nil
	m.Revive()
	m.mustApply(t, joining())
}
