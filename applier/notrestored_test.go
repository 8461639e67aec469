package applier_test

import (
	"errors"
	"testing"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// TestARollbackAfterWhichAServiceDoesNotRun is not called one: the host is not as it was, and the next run goes on.
func TestARollbackAfterWhichAServiceDoesNotRun(t *testing.T) {
	t.Parallel()
	m, n := badKubelet(t, simulation.Behaviour{Needs: lacksBad})
	next := n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" })
	e := m.engine()
	e.Emit = func(event protocol.Event) {
		if event.Event == protocol.EventRollback { // from now on, it ends
			m.edit(func(s *simulation.State) {
				s.Script.Services = map[string]simulation.Behaviour{"kubelet": {After: simulation.AfterCrashes}}
			})
		}
	}
	o, err := e.Apply(t.Context(), next.Manifest(t), reader(t, next, next.Needs(t)), applier.Options{MaxImpact: bundle.ImpactReboot})
	var partial *applier.PartialError
	if !errors.As(err, &partial) || o.Result != protocol.ResultPartial {
		t.Errorf("%v, %+v", err, o)
	}
	if o := m.observe(t, n); o.Interrupted == "" {
		t.Error("the run counts as ended")
	}
	// The service works again: the rollback ends, and reports it.
	m.edit(func(s *simulation.State) { s.Script.Services = nil })
	var back *applier.RolledBackError
	if _, err := m.repair(t.Context()); !errors.As(err, &back) {
		t.Errorf("%v", err)
	}
	if o := m.observe(t, n); !o.InSync || o.Interrupted != "" {
		t.Errorf("%+v", o)
	}
}
