package applier_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// applyCut applies a bundle until the process is killed before the n-th step. It reports whether it was.
func (m *machine) applyCut(t *testing.T, n node, step int) bool {
	t.Helper()
	m.CutAt(step)
	_, err := m.apply(t, n, applier.Options{})
	if err == nil {
		return false
	}
	if !errors.Is(err, hostsim.ErrCut) {
		t.Fatalf("cut at %d: %v", step, err)
	}
	m.Revive()
	return true
}

// TestARunInterruptedAtAnyStepIsResumed kills the process before every single step of an application, and then lets the node
// program repair, the same bundle come again, or another one.
func TestARunInterruptedAtAnyStepIsResumed(t *testing.T) {
	t.Parallel()
	first := newNode()
	for _, tt := range []struct {
		name  string
		start func(*testing.T) *machine
		apply node
	}{
		{"on an empty machine", func(*testing.T) *machine { return newMachine() }, first},
		{"over another bundle", func(t *testing.T) *machine {
			m := newMachine()
			m.mustApply(t, first)
			return m
		}, first.Changed(changes[len(changes)-1].change)},
		{"over a change of everything's configuration", func(t *testing.T) *machine {
			m := newMachine()
			m.mustApply(t, first)
			m.Place(`C:\k\foreign.txt`, bundle.AccessUsers, "not ours")
			return m
		}, first.Changed(func(n *node) {
			n.Files[`C:\k\kubelet.conf`], n.Files[`C:\k\containerd\containerd_conf.toml`] = "a", "b"
			n.SecretProxy = "http://user:sesame-x@proxy:1"
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := tt.start(t)
			want, third := start.copy(), start.copy()
			want.mustApply(t, tt.apply)
			third.mustApply(t, little())
			for step := 0; ; step++ {
				m := start.copy()
				if !m.applyCut(t, tt.apply, step) {
					if step < 20 {
						t.Errorf("only %d steps", step)
					}
					break
				}
				other := m.copy()
				checkTakenUp(t, fmt.Sprintf("step %d, applied again", step), m, tt.apply, want.place())
				checkTakenUp(t, fmt.Sprintf("step %d, then another", step), other, little(), third.place())
			}
		})
	}
}

func checkTakenUp(t *testing.T, name string, m *machine, n node, want simulation.Snapshot) {
	t.Helper()
	if _, err := m.apply(t, n, applier.Options{}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", name, diff)
	}
	if o := m.observe(t, n); !o.InSync || o.Interrupted != "" {
		t.Fatalf("%s: %+v", name, o)
	}
}

// little is a bundle with few entries: nothing of an interrupted run may stay.
func little() node {
	return newNode().Changed(func(n *node) {
		n.Files, n.Services, n.Exclusive, n.Programs = map[string]string{`C:\k\kubelet.conf`: "third"}, nil, nil, nil
		n.SecretProxy, n.Proxy, n.CAs, n.Secrets = "", nil, []string{"third CA"}, nil
	})
}

// TestRepairResumesAnInterruptedRun leaves it to the node agent: it resumes, or rolls back if contents are missing.
func TestRepairResumesAnInterruptedRun(t *testing.T) {
	t.Parallel()
	first := newNode()
	start := newMachine()
	start.mustApply(t, first)
	next := first.Changed(changes[len(changes)-1].change)
	done := start.copy()
	done.mustApply(t, next)
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCut(t, next, step) {
			break
		}
		if _, err := m.repair(t.Context()); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if differs(start.place(), m.place()) != "" {
			if diff := differs(done.place(), m.place()); diff != "" {
				t.Fatalf("step %d: neither as before nor as after (-after +got):\n%s", step, diff)
			}
		}
	}
}

// A service that was unhealthy before and does not change is no reason to roll back.
func TestAnUnhealthyServiceThatDoesNotChangeIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := newNode()
	start := newMachine()
	start.mustApply(t, n)
	start.edit(func(s *simulation.State) {
		s.Script.Probes = []simulation.SilentProbe{{Target: "http://127.0.0.1/kubelet"}}
	})
	next := n.Changed(func(n *node) { n.Files[`C:\k\containerd\registries\a.io\hosts.toml`] = "server = \"https://ill.io\"\n" })
	cuts := 0
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCut(t, next, step) {
			break
		}
		cuts++
		if o, err := m.repair(t.Context()); err != nil {
			t.Errorf("step %d: %+v, %v", step, o, err)
		}
		if o := m.mustApply(t, next); o.Restarted > 0 {
			t.Errorf("step %d: %+v", step, o)
		}
	}
	if cuts < 5 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestRepeatedInterruptionsConverge kills the process repeatedly, at random steps.
func TestRepeatedInterruptionsConverge(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // which steps are cut has to be the same in every run
	first := newNode()
	for range 60 {
		m := newMachine()
		nodes := []node{first, first.Changed(changes[len(changes)-1].change), first.Changed(changes[3].change)}
		var last node
		for range 6 {
			last = nodes[random.IntN(len(nodes))]
			m.applyCut(t, last, random.IntN(80))
		}
		m.Revive()
		want := newMachine()
		want.mustApply(t, last)
		m.mustApply(t, last)
		if diff := differs(want.withoutShadows(), m.withoutShadows()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}
