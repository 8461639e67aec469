package plan

import (
	"strings"
	"testing"
	"time"

	"wmco/bundle"
)

// TestAChangeWaitsForItsWindow: by its impact, with the time at which the window opens; the next call comes then.
func TestAChangeWaitsForItsWindow(t *testing.T) {
	opens := noon().Add(3 * time.Hour)
	for name, c := range map[string]struct {
		cost   bundle.Impact
		closed Closed
		change func(*Node)
		waits  bool
	}{
		"a drain, with a window for drains":           {bundle.ImpactDrain, Closed{Drain: opens}, nil, true},
		"a drain, with a window for boots":            {bundle.ImpactDrain, Closed{Reboot: opens}, nil, false},
		"a boot, with a window for boots":             {bundle.ImpactReboot, Closed{Reboot: opens}, nil, true},
		"a restart, with a window for restarts":       {bundle.ImpactRestart, Closed{Restart: opens}, nil, true},
		"a restart, with windows for the rest":        {bundle.ImpactRestart, Closed{Drain: opens, Reboot: opens}, nil, false},
		"no impact, with all windows closed":          {bundle.ImpactNone, Closed{opens, opens, opens}, nil, false},
		"a drain, with a window that has just opened": {bundle.ImpactDrain, Closed{Drain: noon()}, nil, false},
		"a drain that has its place":                  {bundle.ImpactDrain, Closed{Drain: opens}, func(n *Node) { n.State.Slot = Slot{Taken: noon(), Held: true} }, false},
		"a node that joins":                           {bundle.ImpactReboot, Closed{opens, opens, opens}, func(n *Node) { n.Joining = true }, false},
		"something urgent that restarts services": {bundle.ImpactRestart, Closed{Restart: opens}, func(n *Node) {
			n.Urgent = Urgent{Bundle: n.Wanted, Cost: bundle.ImpactRestart}
		}, false},
	} {
		n := node("win-1", wants(c.cost))
		if c.change != nil {
			c.change(&n)
		}
		f := Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}
		f.Policy.Closed = c.closed
		p := NextSteps(f)
		waits := p.Nodes[0].Reason == ReasonWindow
		switch {
		case waits != c.waits:
			t.Errorf("%s: %+v", name, p.Nodes[0])
		case waits && (len(p.Steps) > 0 || p.Wake != 3*time.Hour || !strings.Contains(p.Fleet.Message, "the next one opens at "+opens.UTC().Format(time.RFC3339))):
			t.Errorf("%s: steps %v, next call in %s, %s", name, p.Steps, p.Wake, p.Fleet.Message)
		case !waits && len(p.Steps) == 0:
			t.Errorf("%s: nothing is done: %+v", name, p.Nodes[0])
		}
	}
}

// TestAPredictionWaitsForTheWindow: the first node begins when it opens.
func TestAPredictionWaitsForTheWindow(t *testing.T) {
	f := Fleet{Nodes: []Node{node("win-1", wants(drain)), node("win-2", wants(drain))}, Policy: policy(), Now: noon()}
	f.Policy.Closed = Closed{Drain: noon().Add(3 * time.Hour)}
	p := PredictRollout(f, Durations{})
	if len(p.Order) != 2 || p.Order[0].Begins < 3*time.Hour || p.Drains != 2 || len(p.Left) != 0 {
		t.Errorf("%+v", p)
	}
}

// TestAPlanWakesForTheWindow: a node that waits is started when the window opens.
func TestAPlanWakesForTheWindow(t *testing.T) {
	f := Fleet{Nodes: []Node{node("win-1", wants(drain))}, Policy: policy(), Now: noon()}
	f.Policy.Closed = Closed{Drain: noon().Add(3 * time.Hour)}
	for range 3 {
		if p := NextSteps(f); p.Nodes[0].Reason != ReasonWindow || p.Wake != f.Policy.Closed.Drain.Sub(f.Now) {
			t.Errorf("%+v, next call in %s", p.Nodes[0], p.Wake)
		}
		f.Now = f.Now.Add(time.Hour)
	}
	if p := NextSteps(f); len(p.Steps) != 1 {
		t.Errorf("the window is open: %+v", p)
	}
}
