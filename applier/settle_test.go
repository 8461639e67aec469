package applier_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// TestOneGoodAnswerIsNoHealth has a kubelet that answers right after its start, and then does not stay healthy.
func TestOneGoodAnswerIsNoHealth(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*machine){
		"it ends": func(m *machine) {
			editService(m, "kubelet", func(s *simulation.Service) { s.Status, s.Processes = "stopped", nil })
		},
		"it restarts again and again": func(m *machine) {
			m.edit(func(s *simulation.State) {
				s.Script.Services = map[string]simulation.Behaviour{"kubelet": {After: simulation.AfterRestarts}}
			})
		},
		"it stops answering": func(m *machine) {
			m.edit(func(s *simulation.State) {
				s.Script.Probes = []simulation.SilentProbe{{Target: "http://127.0.0.1/kubelet"}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, n := newMachine(), newNode()
			m.mustApply(t, n)
			want := m.place()
			e := m.engine()
			started := m.clock.SinceBoot()
			e.Clock = &later{Clock: m.clock, at: started + 8*time.Second, do: func() { after(m) }}
			next := n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "next" })
			seen := m.observe(t, next)
			o, err := e.Apply(t.Context(), next.Manifest(t), reader(t, next, seen.Missing), applier.Options{})
			var back *applier.RolledBackError
			if !errors.As(err, &back) || !strings.Contains(err.Error(), "kubelet") {
				t.Fatalf("%v, %+v", err, o)
			}
			m.edit(func(s *simulation.State) { s.Script = simulation.Script{} })
			if diff := differs(want, m.place()); diff != "" && name != "it restarts again and again" {
				t.Errorf("not as it was (-want +got):\n%s", diff)
			}
		})
	}
}

// later is a clock that does something when a time has come.
type later struct {
	applier.Clock
	at time.Duration
	do func()
}

func (c *later) After(d time.Duration) <-chan time.Time {
	fired := c.Clock.After(d)
	if c.do != nil && c.Clock.SinceBoot() >= c.at {
		c.do()
		c.do = nil
	}
	return fired
}

// A process that restarts once and then stays is healthy, only later.
func TestAServiceSettlesAfterARestart(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	e := m.engine()
	e.Clock = &later{Clock: m.clock, at: 5 * time.Second, do: func() {
		editService(m, "kubelet", func(s *simulation.Service) {
			own := s.Processes[0]
			own.ID += 1000
			s.Processes = []simulation.Process{own}
		})
	}}
	seen := m.observe(t, n)
	if o, err := e.Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), applier.Options{}); err != nil {
		t.Fatalf("%v, %+v", err, o)
	}
	if ran := m.clock.SinceBoot(); ran < 15*time.Second || ran > 17*time.Second {
		t.Errorf("healthy after %s", ran)
	}
}

func TestTheBundleSaysHowLongAServiceSettles(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]time.Duration{0: bundle.DefaultSettleSeconds * time.Second, 3: 3 * time.Second, 90: 90 * time.Second} {
		m := newMachine()
		n := newNode().Changed(func(n *node) {
			for i := range n.Services {
				n.Services[i].Probe.SettleSeconds = seconds
			}
		})
		m.mustApply(t, n)
		if ran := m.clock.SinceBoot(); ran < want || ran > want+time.Second {
			t.Errorf("%d seconds: healthy after %s, want %s", seconds, ran, want)
		}
	}
}
