package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/layout"
)

// olderTable is that of an agent from before a service was added.
func olderTable(b bundle.Bundle) error {
	for _, l := range b.Layers() {
		if slices.ContainsFunc(l.Services, func(s bundle.Service) bool { return s.Name == "newcomer" }) {
			return fmt.Errorf("%w: %s: a node has no service of this name", layout.ErrForeign, bundle.KindService.ID("newcomer"))
		}
	}
	return nil
}

// TestABundleForANewerAgentIsRefusedWithItsFix: a new operator renders a service that the agent, from before the table had it, does not know. The
// host keeps what it has, and the fault is not that of the inputs.
func TestABundleForANewerAgentIsRefusedWithItsFix(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.Engine.Permits = olderTable
	before := w.bundle
	w.bundle = before.Changed(func(n *bundletest.Node) {
		n.Services = append(n.Services, bundletest.Service("newcomer", []string{`C:\k\kubelet.exe`}, nil))
	})
	w.publish(bundle.ImpactReboot)
	w.host.ClearLog()
	got := w.turn()
	for _, part := range []string{"service newcomer", "older than the operator", "fix: "} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("%q lacks %q", got.Message, part)
		}
	}
	if got.State != published.StateFailed || got.Fault != published.FaultAgent || got.Applied == "" {
		t.Errorf("%s, fault %q, applied %q", got.State, got.Fault, got.Applied)
	}
	if changes := (&signing{world: w}).changes(); len(changes) > 0 {
		t.Errorf("the host was changed: %v", changes)
	}
	// The operator of the release between renders no such service, and brings an agent that knows it.
	w.bundle = before
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.Engine = w.engine()
	w.bundle = before.Changed(func(n *bundletest.Node) {
		n.Services = append(n.Services, bundletest.Service("newcomer", []string{`C:\k\kubelet.exe`}, nil))
	})
	w.publish(bundle.ImpactReboot)
	if got := w.turn(); got.State != published.StateApplied {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}
