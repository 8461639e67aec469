package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Prediction is what a rollout will do if nothing goes wrong and nothing else changes.
type Prediction struct {
	// Nodes is the number of nodes that change, Restarts those of whom only services restart, Drains those that are
	// drained, Boots those of them that boot. WindowsBoots are the hosts that boot for what Windows itself waits for,
	// and change nothing with that.
	Nodes    int
	Restarts int
	Drains   int
	Boots    int

	WindowsBoots int
	// Order is when which node goes, the first one first.
	Order []Change
	// Left are the nodes that do not get the change, or the boot that Windows waits for, with what they wait for.
	Left []Status
	// Takes is the time to the end. It is a lower limit if Unmeasured holds impacts: of those no turn in this cluster
	// is known.
	Takes      time.Duration
	Unmeasured []bundle.Impact
}

// Change is the turn of one node in a prediction.
type Change struct {
	Node   string
	Impact bundle.Impact
	Canary bool
	// Windows is true where the host boots for Windows itself, and the node has its wanted bundle.
	Windows bool
	// Begins and Ends are counted from now.
	Begins time.Duration
	Ends   time.Duration
}

// PredictRollout makes the steps of the planner on nodes that do as they are told, until nothing is left to do.
func PredictRollout(f Fleet, d Durations) Prediction {
	s := simulation{fleet: f, durations: d, begun: f.Now, ends: map[string]time.Time{}, index: map[string]int{},
		open: map[string]int{}}
	s.fleet.Nodes = slices.Clone(f.Nodes)
	for i, n := range s.fleet.Nodes {
		s.index[n.Name] = i
		if m := evaluateNode(n, &f.Policy); n.Published != "" && !m.done && m.reachable {
			s.ends[n.Name] = s.turnEnd(&s.fleet.Nodes[i], m.turn.Begun)
		}
	}
	s.runRounds()
	return s.toPrediction()
}

// simulation is a fleet of ideal nodes.
type simulation struct {
	fleet     Fleet
	durations Durations
	begun     time.Time
	index     map[string]int
	// open are the changes that are under way, by the name of the node.
	open map[string]int
	// ends is when the agent of a node will have applied its published bundle.
	ends       map[string]time.Time
	changes    []Change
	unmeasured []bundle.Impact
	last       Plan
	// finished is when the last node changed.
	finished time.Time
}

// maxRounds is how often a simulation decides for each node: a drained turn takes seven decisions.
const maxRounds = 20

func (s *simulation) runRounds() {
	for range maxRounds * (len(s.fleet.Nodes) + 1) {
		s.last = NextSteps(s.fleet)
		for _, step := range s.last.Steps {
			s.makeStep(step)
		}
		if s.finishAgents() || len(s.last.Steps) > 0 {
			continue
		}
		next := s.nextEvent()
		if next.IsZero() {
			return
		}
		s.passTime(next.Sub(s.fleet.Now))
		s.finishAgents()
	}
}

// nextEvent returns when the next event happens without a step.
func (s *simulation) nextEvent() time.Time {
	var first time.Time
	for _, t := range s.ends {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	if s.last.Wake > 0 && s.needsOnlyTime() {
		if w := s.fleet.Now.Add(s.last.Wake); first.IsZero() || w.Before(first) {
			return w
		}
	}
	return first
}

// passTime lets time pass.
func (s *simulation) passTime(d time.Duration) {
	s.fleet.Now = s.fleet.Now.Add(d)
	for i := range s.fleet.Nodes {
		s.fleet.Nodes[i].Seen = s.fleet.Nodes[i].Seen.addTime(d)
	}
}

// needsOnlyTime reports whether time alone brings the rollout on: a canary settles, a drain is retried, a boot for
// Windows proves well, or a window opens. It stays open then: when it closes again is not simulated.
func (s *simulation) needsOnlyTime() bool {
	return slices.ContainsFunc(s.last.Nodes, func(n Status) bool {
		return n.Reason == ReasonSettling || n.Reason == ReasonDrain || n.Reason == ReasonWindow
	}) || slices.ContainsFunc(s.fleet.Nodes, func(n Node) bool {
		m := evaluateNode(n, &s.fleet.Policy)
		return m.windowsAsksBoot()
	})
}

// makeStep makes a step.
func (s *simulation) makeStep(step Step) {
	n := &s.fleet.Nodes[s.index[step.Node]]
	n.Seen = n.Seen.followState(n.State, step.State)
	n.State = step.State
	switch step.Cordon {
	case SwitchOn:
		n.Unschedulable, n.CordonedFor = true, published.CordonedForRollout
	case SwitchOff:
		n.Unschedulable, n.CordonedFor = false, ""
	case SwitchKeep:
	}
	if step.Action == ActionDrain {
		n.Drained, n.DrainBlocked = true, ""
	}
	if step.Action == ActionReserve {
		s.openChange(n.Name)
	}
	if step.Action != ActionPublish && step.Action != ActionPermit {
		if step.Permit != "" {
			n.Permitted, n.Boot.Permitted = step.Permit, step.Boot
		}
		return
	}
	n.Published, n.Permitted, n.Boot.Permitted = step.Bundle, step.Permit, step.Boot
	if m := evaluateNode(*n, &s.fleet.Policy); m.reachable {
		s.ends[n.Name] = s.turnEnd(n, step.State.Turn.Begun)
		c := s.openChange(n.Name)
		c.Impact, c.Canary = largerImpact(c.Impact, step.Permit), step.State.Turn.Canary
		c.Windows = step.Boot != "" && step.Boot == n.State.WindowsBoot.Request
	}
}

// openChange returns the change of a node that is under way, or a new one.
func (s *simulation) openChange(name string) *Change {
	if i, ok := s.open[name]; ok {
		return &s.changes[i]
	}
	s.open[name] = len(s.changes)
	s.changes = append(s.changes, Change{Node: name, Impact: bundle.ImpactNone, Begins: s.fleet.Now.Sub(s.begun)})
	return &s.changes[len(s.changes)-1]
}

// turnEnd returns when the agent will have ended a turn with its permission.
func (s *simulation) turnEnd(n *Node, begun time.Time) time.Time {
	took, known := s.durations.MedianOf(n.Group, n.Permitted)
	if !known && !slices.Contains(s.unmeasured, n.Permitted) {
		s.unmeasured = append(s.unmeasured, n.Permitted)
	}
	at := begun.Add(took)
	if at.Before(s.fleet.Now) || begun.IsZero() {
		return s.fleet.Now
	}
	return at
}

// finishAgents lets the agents end whose time has come, and reports whether there was one.
func (s *simulation) finishAgents() bool {
	ended := false
	for _, name := range slices.Sorted(maps.Keys(s.ends)) { // so that a prediction is the same each time
		if s.ends[name].After(s.fleet.Now) {
			continue
		}
		delete(s.ends, name)
		n := &s.fleet.Nodes[s.index[name]]
		if !n.Ready {
			n.Ready, n.ReadySince, n.Seen.Ready = true, s.fleet.Now, 0
		}
		n.Report = published.Report{
			State: published.StateApplied, Desired: n.Published, Applied: n.Published,
			Features: n.Report.Features, Rebooted: cmp.Or(n.Boot.Permitted, n.Report.Rebooted),
		}
		n.Since, n.Seen.Reported, n.Unsettled = s.fleet.Now, 0, ""
		if n.Permitted == bundle.ImpactReboot {
			n.Boot.Windows = ""
		}
		if n.Published == n.Wanted {
			n.Cost = bundle.ImpactNone
		}
		s.openChange(name).Ends = s.fleet.Now.Sub(s.begun)
		delete(s.open, name)
		ended, s.finished = true, s.fleet.Now
	}
	return ended
}

func (s *simulation) toPrediction() Prediction {
	p := Prediction{Order: s.changes, Unmeasured: s.unmeasured}
	if !s.finished.IsZero() {
		p.Takes = s.finished.Sub(s.begun)
	}
	for _, c := range s.changes {
		if c.Windows {
			p.WindowsBoots++
			continue
		}
		p.Nodes++
		p.Restarts += boolToInt(c.Impact == bundle.ImpactRestart)
		p.Drains += boolToInt(c.Impact.Rank() >= bundle.ImpactDrain.Rank())
		p.Boots += boolToInt(c.Impact == bundle.ImpactReboot)
	}
	for _, n := range s.last.Nodes {
		waits := n.Phase != PhaseUpdated && n.Phase != PhaseUpdating
		if m := evaluateNode(s.fleet.Nodes[s.index[n.Node]], &s.fleet.Policy); waits || m.windowsWaits() {
			p.Left = append(p.Left, n)
		}
	}
	slices.SortFunc(p.Unmeasured, func(a, b bundle.Impact) int { return a.Rank() - b.Rank() })
	return p
}
