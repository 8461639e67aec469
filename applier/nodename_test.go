package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle"
)

// named is the bundle of a node with a name.
func named(name string) node {
	return newNode().Changed(func(n *node) { n.NodeName = name })
}

// TestTheBundleOfAnotherNodeIsRefused: by all that compare, apply and stage, and nothing is changed.
func TestTheBundleOfAnotherNodeIsRefused(t *testing.T) {
	t.Parallel()
	certificate := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return name, nil }
	}
	for name, tt := range map[string]struct {
		has     node
		kubelet string
		wants   node
		change  bool
		refused string
	}{
		"the bundle that was applied is another node's":           {named("win-a"), "", named("win-b"), false, "by the bundle that was applied last"},
		"the certificate is another node's":                       {newNode(), "win-a", named("win-b"), false, "by the client certificate of its kubelet"},
		"the bundle that was applied counts before a certificate": {named("win-a"), "win-b", named("win-b"), false, "by the bundle that was applied last"},
		"the same node":              {named("win-b"), "win-b", named("win-b"), false, ""},
		"a host that is no node yet": {newNode(), "", named("win-b"), false, ""},
		"a bundle without a name, as for a host that is to join": {named("win-a"), "win-a", newNode(), false, ""},
		"another node on purpose":                                {named("win-a"), "win-a", named("win-b"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			m.mustApply(t, tt.has)
			e := m.engine()
			e.NodeName, e.ChangeNode = certificate(tt.kubelet), tt.change
			wants := tt.wants.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "of the other\n" })
			before := m.place()
			_, observed := e.Observe(t.Context(), wants.Manifest(t), reader(t, wants, nil).Contents(), false)
			_, staged := e.Stage(t.Context(), wants.Manifest(t), reader(t, wants, nil), time.Minute)
			_, planned := e.Apply(t.Context(), wants.Manifest(t), reader(t, wants, nil), applier.Options{DryRun: true})
			if tt.refused == "" {
				seen, err := e.Observe(t.Context(), wants.Manifest(t), reader(t, wants, nil).Contents(), false)
				if err == nil {
					_, err = e.Apply(t.Context(), wants.Manifest(t), reader(t, wants, seen.Missing), applier.Options{})
				}
				if errors.Join(observed, err) != nil || staged != nil || planned != nil {
					t.Fatal(observed, staged, planned, err)
				}
				return
			}
			_, applied := e.Apply(t.Context(), wants.Manifest(t), reader(t, wants, nil), applier.Options{})
			for what, err := range map[string]error{"observe": observed, "stage": staged, "apply --dry-run": planned, "apply": applied} {
				var refused *applier.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(refused.Why, tt.refused) || !strings.Contains(refused.Why, "--change-node") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if after := m.place(); after.Files[`C:\k\kubelet.conf`] != before.Files[`C:\k\kubelet.conf`] {
				t.Error("the host was changed")
			}
		})
	}
}

func TestTheNameOfANodeIsPartOfItsLayer(t *testing.T) {
	t.Parallel()
	a, err := named("win-a").Bundle(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := named("win-b").Bundle(t).Digest(); err != nil || a == b {
		t.Errorf("two nodes have one bundle: %v", err)
	}
	for _, name := range []string{"WIN-A", "win a", "win_a", strings.Repeat("x", 254), "ü"} {
		b := named(name).Bundle(t)
		if err := b.Check(); !errors.Is(err, bundle.ErrInconsistent) {
			t.Errorf("%q: %v", name, err)
		}
	}
	b := newNode().Bundle(t)
	b.Cluster.NodeName = "win-a"
	if err := b.Check(); !errors.Is(err, bundle.ErrInconsistent) {
		t.Errorf("the layer of all nodes has a name: %v", err)
	}
}

// TestACleanupRemovesWhatWasAccepted: the host may become another cluster's, whose counter is its own.
func TestACleanupRemovesWhatWasAccepted(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	accepted := applier.Accepted{Term: 7, Sequence: 3, Text: bundle.Of([]byte("text"))}
	if err := m.engine().NoteAccepted(t.Context(), accepted); err != nil {
		t.Fatal(err)
	}
	got, err := m.engine().LastAccepted(t.Context())
	if err != nil || got.Term != 7 || got.Sequence != 3 || got.Text != accepted.Text || got.Program == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	m.mustApply(t, named("win-a")) // another bundle does not
	if got, err := m.engine().LastAccepted(t.Context()); err != nil || got.Term != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := m.engine().LastAccepted(t.Context()); err != nil || got.Term != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
