package agent

import (
	"testing"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
)

// askBoot publishes, signed, that the host may boot for a request.
func (s *signing) askBoot(request string, permit bundle.Impact) bundle.Digest {
	s.t.Helper()
	asked := bundle.Of([]byte(request))
	s.change = func(d *published.Desired) { d.Boot, d.PermitFor = asked, 1800 }
	s.publishSigned(permit)
	return asked
}

// bootsAsked is how often the agent has asked the host to boot since the log was cleared.
func (w *world) bootsAsked() int {
	n := 0
	for _, op := range w.host.Log() {
		if op.Verb == simulation.VerbReboot {
			n++
		}
	}
	return n
}

// bootIfAsked boots the host if it was asked to, and starts the agent again as Windows does.
func (w *world) bootIfAsked() {
	w.t.Helper()
	if w.bootsAsked() > 0 {
		w.boot()
		w.host.ClearLog()
		w.restart()
		w.recallBoots(w.t.Context())
	}
}

func TestASignedRequestBootsTheHostOnce(t *testing.T) {
	s := withKeys(t, signingKey(1))
	before := s.host.Snapshot().Boot
	s.host.ClearLog()
	asked := s.askBoot("1", bundle.ImpactReboot)
	if got := s.turn(); got.Rebooted != "" || s.bootsAsked() != 1 {
		t.Fatalf("%d boots, %+v", s.bootsAsked(), got)
	}
	if e := s.cluster.events; len(e) != 1 || e[0].Reason != EventBooting || e[0].Warning {
		t.Errorf("events %+v", e)
	}
	for range 3 {
		s.bootIfAsked()
		if got := s.turn(); got.Rebooted != asked || got.State != published.StateApplied {
			t.Errorf("%s, rebooted %q", got.State, got.Rebooted)
		}
	}
	s.change = nil // the operator has released the node
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.Rebooted != asked {
		t.Errorf("rebooted %q after the turn", got.Rebooted)
	}
	s.askBoot("1", bundle.ImpactReboot) // the same value again
	s.turn()
	if boots := s.host.Snapshot().Boot - before; boots != 1 || s.bootsAsked() != 0 {
		t.Errorf("%d boots, %d more asked for", boots, s.bootsAsked())
	}
	next := s.askBoot("2", bundle.ImpactReboot)
	s.turn()
	s.bootIfAsked()
	if got := s.turn(); got.Rebooted != next || s.host.Snapshot().Boot-before != 2 {
		t.Errorf("another value: rebooted %q, %d boots", got.Rebooted, s.host.Snapshot().Boot-before)
	}
}

// TestWhoMayNotBootAHost: a right to write to the Node alone, a permission that has ended, or one that is not given yet.
func TestWhoMayNotBootAHost(t *testing.T) {
	for name, publish := range map[string]func(*signing){
		"not drained": func(s *signing) { s.askBoot("1", bundle.ImpactRestart) },
		"not signed": func(s *signing) {
			d := s.publish(bundle.ImpactReboot)
			d.Boot, d.NodeName = bundle.Of([]byte("1")), fakeNode
			s.cluster.node.Desired, _ = d.Encode()
		},
		"signed with another key": func(s *signing) {
			s.keys[0] = signingKey(9)
			s.askBoot("1", bundle.ImpactReboot)
		},
		"a paused node": func(s *signing) {
			s.cluster.node.Paused = true
			s.askBoot("1", bundle.ImpactReboot)
		},
		"a node that is paused after its agent has accepted the request": func(s *signing) {
			s.askBoot("1", bundle.ImpactReboot)
			s.turnDuringAnotherRun()
			s.cluster.node.Paused = true
		},
		"permitted too long ago": func(s *signing) {
			s.askBoot("1", bundle.ImpactReboot)
			s.turnDuringAnotherRun()
			s.clock.Pass(time.Hour)
			s.restart()
		},
	} {
		s := withKeys(t, signingKey(1))
		s.host.ClearLog()
		publish(s)
		for range 3 {
			s.turn()
			s.clock.Pass(time.Minute)
		}
		if s.bootsAsked() != 0 || s.lastReport().Rebooted != "" {
			t.Errorf("%s: %d boots", name, s.bootsAsked())
		}
	}
}

// turnDuringAnotherRun lets the agent accept the published state, and keeps it from acting on it.
func (w *world) turnDuringAnotherRun() {
	w.t.Helper()
	release, err := w.host.Lock(w.t.Context(), "another run")
	if err != nil {
		w.t.Fatal(err)
	}
	w.turn()
	if err := release(); err != nil {
		w.t.Fatal(err)
	}
}

// TestAHostWithoutKeysIsNotBooted on request: it accepts whatever its Node has.
func TestAHostWithoutKeysIsNotBooted(t *testing.T) {
	w := newWorld(t)
	d := w.publish(bundle.ImpactReboot)
	d.Boot = bundle.Of([]byte("1"))
	var err error
	if w.cluster.node.Desired, err = d.Encode(); err != nil {
		t.Fatal(err)
	}
	w.host.ClearLog()
	for range 3 {
		if got := w.turn(); got.State != published.StateApplied || w.bootsAsked() != 0 {
			t.Errorf("%s, %d boots", got.State, w.bootsAsked())
		}
	}
}

// TestAKilledAgentBootsTheHostOnce, whichever step it is killed at.
func TestAKilledAgentBootsTheHostOnce(t *testing.T) {
	for cut := 0; ; cut++ {
		s := withKeys(t, signingKey(1))
		before := s.host.Snapshot().Boot
		s.host.ClearLog()
		asked := s.askBoot("1", bundle.ImpactReboot)
		s.host.CutAt(cut)
		s.setNode(s.cluster.node, s.changed)
		_ = s.runDueWork(t.Context())
		isCut := s.host.Cut()
		s.host.Revive()
		for range 4 {
			if s.bootsAsked() > 0 {
				s.boot()
				s.host.ClearLog()
			}
			s.restart()
			s.recallBoots(t.Context())
			s.turn()
			s.clock.Pass(time.Minute)
		}
		if boots := s.host.Snapshot().Boot - before; boots != 1 || s.lastReport().Rebooted != asked {
			t.Errorf("killed at step %d: %d boots, rebooted %q", cut, boots, s.lastReport().Rebooted)
		}
		if !isCut {
			if cut < 2 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
	}
}
