package applier_test

import (
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// settingsNode returns a node with a setting of each part of Windows that may not answer.
func settingsNode() node {
	return newNode().Changed(func(n *node) {
		n.Features = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactNone}}
		n.Endpoints = []bundle.Endpoint{{Name: "VIPEndpoint", Network: bundletest.Network, Compartment: 1, Impact: bundle.ImpactNone}}
	})
}

// settled returns a machine that has the node.
func settled(t *testing.T) *machine {
	t.Helper()
	m := newMachine()
	m.edit(func(s *simulation.State) {
		s.Facts.Networks = []bundle.HNSNetwork{{Name: bundletest.Network, AddressPrefix: "10.132.1.0/24"}}
	})
	m.mustApply(t, settingsNode())
	m.boot()
	if _, err := m.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := m.observe(t, settingsNode()); !o.InSync {
		t.Fatalf("%+v", o.Actions)
	}
	return m
}

func (m *machine) silence(parts ...simulation.Part) {
	m.edit(func(s *simulation.State) { s.Script.Silent = parts })
}

// silentParts are those of settingsNode, with the entry that each keeps.
func silentParts() map[simulation.Part]string {
	return map[simulation.Part]string{simulation.PartHNS: "endpoint VIPEndpoint", simulation.PartDISM: "feature Containers"}
}

// TestAPartOfWindowsThatDoesNotAnswer: what it keeps is left alone, and everything else is compared and repaired.
func TestAPartOfWindowsThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for part, entry := range silentParts() {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			m := settled(t)
			m.silence(part)
			if err := m.StopService(t.Context(), "kubelet"); err != nil {
				t.Fatal(err)
			}
			if err := m.Remove(t.Context(), kubeletFile); err != nil {
				t.Fatal(err)
			}
			o, err := m.repair(t.Context())
			if err != nil || len(o.Unknown) != 1 || !strings.Contains(o.Unknown[0].Error, string(part)) || !strings.HasPrefix(entry, string(o.Unknown[0].Part)) {
				t.Errorf("repair: %v, unknown %+v", err, o.Unknown)
			}
			m.runs(t, "kubelet")
			seen := m.observe(t, settingsNode())
			noted := slices.ContainsFunc(seen.Notes, func(n string) bool { return strings.Contains(n, entry) && strings.Contains(n, string(part)) })
			if seen.InSync || len(seen.Actions) > 0 || !noted {
				t.Errorf("in sync %t, %+v, notes %v", seen.InSync, seen.Actions, seen.Notes)
			}
			if booted, err := m.engine().BootOnce(t.Context(), bundle.Of([]byte("x")), "a person asks", 0); err != nil || booted {
				t.Errorf("the boot that a person asks for: %t, %v", booted, err)
			}
			m.silence()
			if o := m.observe(t, settingsNode()); !o.InSync {
				t.Errorf("when it answers: %+v", o.Actions)
			}
		})
	}
}

// TestABundleAndAPartOfWindowsThatDoesNotAnswer: only what changes something that the part keeps waits for it.
func TestABundleAndAPartOfWindowsThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	other := settingsNode().Changed(func(n *node) { n.Files[kubeletFile] += "# changed\n" })
	changed := map[simulation.Part]node{
		simulation.PartHNS: other.Changed(func(n *node) { n.Endpoints = nil }),
		simulation.PartDISM: other.Changed(func(n *node) {
			n.Features = append(n.Features, bundle.Feature{Name: "More", Impact: bundle.ImpactNone})
		}),
	}
	for part := range silentParts() {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			m := settled(t)
			m.silence(part)
			before := m.place()
			if _, err := m.apply(t, changed[part], applier.Options{}); err == nil || !strings.Contains(err.Error(), string(part)) {
				t.Errorf("a bundle that changes what it keeps: %v", err)
			}
			if diff := differs(before, m.place()); diff != "" {
				t.Errorf("the host was changed (-before +after):\n%s", diff)
			}
			m.mustApply(t, other)
			m.silence()
			m.mustApply(t, changed[part])
			if o := m.observe(t, changed[part]); !o.InSync && !slices.ContainsFunc(o.Actions, func(a protocol.Action) bool { return a.Impact == bundle.ImpactReboot }) {
				t.Errorf("%+v", o.Actions)
			}
		})
	}
}

// TestACleanupWithAPartOfWindowsThatDoesNotAnswer removes what it can, and keeps its records for the rest.
func TestACleanupWithAPartOfWindowsThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	m := settled(t)
	m.silence(simulation.PartHNS)
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err == nil || !strings.Contains(err.Error(), string(simulation.PartHNS)) {
		t.Errorf("got %v", err)
	}
	if _, ok := m.Contents(kubeletFile); ok {
		t.Error("a file is left")
	}
	if _, ok := m.Contents(ledgerPath); !ok {
		t.Error("the ledger was removed")
	}
	m.silence()
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Error(err)
	}
	if _, ok := m.Contents(ledgerPath); ok {
		t.Error("the ledger is left")
	}
}
