package applier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
)

// retired is a service that an older program installed, and that this one does not know.
const retired = "retired"

// withRetired returns the node as an older program had it.
func withRetired() node {
	return newNode().Changed(func(n *node) {
		n.Programs[`C:\k\retired.exe`] = "retired"
		n.Services = append(n.Services, bundletest.Service(retired, []string{`C:\k\retired.exe`}, nil, `C:\k\retired.exe`))
	})
}

var errRetired = errors.New("a node has no such service")

// strict returns the engine of a program that does not know the service.
func (m *machine) strict() *applier.Engine {
	e := m.engine()
	e.Permits = func(b bundle.Bundle) error {
		if slices.ContainsFunc(b.Services(), func(s bundle.Service) bool { return s.Name == retired }) {
			return fmt.Errorf("service %s: %w", retired, errRetired)
		}
		return nil
	}
	return e
}

// asks are all ways in which a bundle comes to the engine.
func asks(t *testing.T, n node) map[string]func(context.Context, *applier.Engine) error {
	return map[string]func(context.Context, *applier.Engine) error{
		"apply": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.Apply(ctx, n.Manifest(t), reader(t, n, n.Needs(t)), applier.Options{})
			return err
		},
		"dry run": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.Apply(ctx, n.Manifest(t), reader(t, n, nil), applier.Options{DryRun: true})
			return err
		},
		"stage": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.Stage(ctx, n.Manifest(t), reader(t, n, n.Needs(t)), time.Minute)
			return err
		},
		"observe": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.Observe(ctx, n.Manifest(t), reader(t, n, nil).Contents(), false)
			return err
		},
		"observe changes": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.ObserveChanges(ctx, n.Manifest(t), reader(t, n, nil).Contents())
			return err
		},
		"verify": func(ctx context.Context, e *applier.Engine) error {
			_, err := e.Verify(ctx, n.Manifest(t), reader(t, n, nil).Contents())
			return err
		},
	}
}

// TestABundleThatIsNotPermittedChangesNothing: neither its services nor anything else of it comes to the host, and not even records.
func TestABundleThatIsNotPermittedChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine()
	before := m.Snapshot()
	engines := map[string]*applier.Engine{"a table without the service": m.strict(), "no table": m.engine()}
	engines["no table"].Permits = nil
	for name, e := range engines {
		for what, ask := range asks(t, withRetired()) {
			var refused *applier.RefusedError
			if err := ask(t.Context(), e); !errors.As(err, &refused) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if diff := differs(before, m.Snapshot()); diff != "" {
				t.Errorf("%s, %s: the host changed: %s", name, what, diff)
			}
		}
	}
	for what, ask := range asks(t, newNode()) {
		if err := ask(t.Context(), m.strict()); err != nil {
			t.Errorf("%s of a bundle that is permitted: %v", what, err)
		}
	}
}

// TestWhatAnOlderProgramRecordedIsRemovedAndNotRepaired: a name that is no longer in the table stops no host.
func TestWhatAnOlderProgramRecordedIsRemovedAndNotRepaired(t *testing.T) {
	t.Parallel()
	clean := newMachine()
	clean.mustApply(t, newNode())
	ends := map[string]func(*testing.T, *machine) error{
		"another bundle": func(t *testing.T, m *machine) error {
			seen := m.observe(t, newNode())
			_, err := m.strict().Apply(t.Context(), newNode().Manifest(t), reader(t, newNode(), seen.Missing), applier.Options{})
			if diff := differs(clean.place(), m.place()); diff != "" {
				t.Errorf("not as if it had never been there: %s", diff)
			}
			return err
		},
		"cleanup": func(t *testing.T, m *machine) error {
			_, err := m.strict().Cleanup(t.Context(), applier.Options{})
			if s := m.Snapshot(); len(s.Services) > 0 {
				t.Errorf("services stay: %+v", s.Services)
			}
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			m.mustApply(t, withRetired())
			if err := m.Remove(t.Context(), `C:\k\kubelet.conf`); err != nil {
				t.Fatal(err)
			}
			drifted := m.place()
			for _, dry := range []bool{true, false} {
				var refused *applier.RefusedError
				if _, err := m.strict().Repair(t.Context(), applier.Options{DryRun: dry}); !errors.As(err, &refused) {
					t.Errorf("dry run %t: %v", dry, err)
				}
				if diff := differs(drifted, m.place()); diff != "" {
					t.Errorf("the host changed: %s", diff)
				}
			}
			if err := end(t, m); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnInterruptedRunThatIsNotPermittedIsRolledBack: this program does not end what another one began with a bundle that it would refuse.
func TestAnInterruptedRunThatIsNotPermittedIsRolledBack(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	before := m.place()
	next := withRetired().Changed(func(n *node) { n.Files[resumedFile] = "changed" })
	m.applyKilled(t, next, resumedFile, applier.Options{})
	var back *applier.RolledBackError
	if _, err := m.strict().Repair(t.Context(), applier.Options{}); !errors.As(err, &back) {
		t.Errorf("%v", err)
	}
	if diff := differs(before, m.place()); diff != "" {
		t.Errorf("not rolled back: %s", diff)
	}
	if o := m.observe(t, newNode()); !o.InSync || o.Interrupted != "" {
		t.Errorf("%+v", o)
	}
}

// TestAnInterruptedRollbackIsEndedWhateverItRestores: what was on the host before counts, not what a bundle may name, and the reason of
// the rollback stays.
func TestAnInterruptedRollbackIsEndedWhateverItRestores(t *testing.T) {
	t.Parallel()
	for name, bundles := range map[string][2]node{"to the service": {withRetired(), newNode()}, "from the service": {newNode(), withRetired()}} {
		m := newMachine()
		m.mustApply(t, bundles[0])
		before := m.place()
		next := bundles[1].Changed(func(n *node) { n.Files[resumedFile] = "changed" })
		seen := m.observe(t, next)
		why := errors.New("the node is not Ready")
		_, err := m.engine().Apply(t.Context(), next.Manifest(t), reader(t, next, seen.Missing), applier.Options{Confirm: func(context.Context) error {
			m.CutAt(8) // behind the journal
			return why
		}})
		if !errors.Is(err, hostsim.ErrCut) {
			t.Fatalf("%s: not interrupted: %v", name, err)
		}
		m.Revive()
		var back *applier.RolledBackError
		if _, err := m.strict().Repair(t.Context(), applier.Options{}); !errors.As(err, &back) || !strings.Contains(err.Error(), why.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := differs(before, m.place()); diff != "" {
			t.Errorf("%s: not restored: %s", name, diff)
		}
	}
}
