package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// awaitsBoot is a node whose Windows waits for a boot because of an update.
func awaitsBoot(n *Node) {
	n.Boot.Windows = windowsnode.JoinBoots([]bundle.BootReason{bundle.BootForUpdates})
	n.Report.Features = []published.Feature{published.FeatureBoot}
	n.Report.Facts = &bundle.Facts{PendingBoots: []bundle.BootReason{bundle.BootForUpdates}}
}

// bootedFor is a node that was booted for reasons some hours ago.
func bootedFor(reasons string, hours int) edit {
	return func(n *Node) {
		n.State.WindowsBoot = WindowsBoot{Reasons: reasons, Request: digest(9, n.Name), Begun: ago(60 * hours)}
	}
}

func coordinate(p *Policy) { p.WindowsBoots = true }

// TestWhenAHostIsBootedForWindows: by the rules for changes, and once for a set of reasons.
func TestWhenAHostIsBootedForWindows(t *testing.T) {
	closed := func(p *Policy) { p.WindowsBoots, p.Closed.Reboot = true, noon().Add(time.Hour) }
	fleetPaused := func(p *Policy) { p.WindowsBoots, p.Paused = true, true }
	noCanaries := func(p *Policy) { p.WindowsBoots, p.Canaries, p.MaxUnavailable = true, 0, intstr.FromInt32(2) }
	two := func(p *Policy) { p.WindowsBoots, p.MaxUnavailable = true, intstr.FromInt32(2) }
	const take = "take cordon on scale-down on"
	for name, tt := range map[string]struct {
		nodes     []Node
		policy    func(*Policy)
		want      string
		reporting string
	}{
		"the setting is another one":        {nodes: one(awaitsBoot), policy: func(*Policy) {}, want: "Updated"},
		"it is due":                         {nodes: one(awaitsBoot), want: take, reporting: "Windows needs a reboot (a Windows update was installed)"},
		"an agent that does not know boots": {nodes: one(awaitsBoot, with(func(n *Node) { n.Report.Features = nil })), want: "Updated", reporting: "too old to reboot the host on request"},
		"a paused node":                     {nodes: one(awaitsBoot, paused), want: "Updated", reporting: "the node is paused"},
		"a rollout that is paused":          {nodes: one(awaitsBoot), policy: fleetPaused, want: "Updated", reporting: "the rollout is paused"},
		"paused after the slot was taken":   {nodes: one(awaitsBoot, claim(1, true)), policy: fleetPaused, want: "release cordon off scale-down off"},
		"a rollout that failures stopped":   {nodes: []Node{node("a", awaitsBoot), node("f", wants(restart), given(restart, 1), reporting(rolledBack, ""), canary)}, want: "Updated", reporting: "stopped: canary f failed"},
		"no window is open":                 {nodes: one(awaitsBoot), policy: closed, want: "Updated", reporting: "the next one opens at 2026-01-01T13:00:00Z"},
		"a window closes in the turn":       {nodes: one(awaitsBoot, claim(1, true)), policy: closed, want: "drain"},
		"a node that does not answer":       {nodes: one(awaitsBoot, silent), want: "Unreachable"},
		"no place":                          {nodes: append(one(awaitsBoot), node("b", notReady)), want: "WaitingForAvailability"},
		"a change comes first":              {nodes: proven(wants(restart), awaitsBoot), want: "publish 2 restart"},
		"a change that waits, too":          {nodes: []Node{node("b", wants(restart), awaitsBoot), node("a", wants(restart), given(restart, 1), reporting(applying, ""), canary)}, want: "WaitingForCanary"},
		"it was booted for the same":        {nodes: one(awaitsBoot, bootedFor("Components,Updates", 100)), want: "note", reporting: "no longer needs the reboot"},
		"and all of it is still there":      {nodes: one(awaitsBoot, bootedFor("Updates", 100)), want: "Updated", reporting: "the reboot by the operator did not clear it"},
		"it was booted for something else":  {nodes: one(awaitsBoot, bootedFor("Files", 5)), want: "note"},
		"not long ago":                      {nodes: one(awaitsBoot, bootedFor("", 5)), want: "Updated", reporting: "at 2026-01-01T13:00:00Z at the earliest"},
		"long ago":                          {nodes: one(awaitsBoot, bootedFor("", 7)), want: take},
		"another node is being booted":      {nodes: []Node{node("a", awaitsBoot), node("b", awaitsBoot, claim(1, true))}, policy: two, want: "Updated", reporting: "waiting for b to be Ready for rollout.settle after a reboot"},
		"another one has come back just now": {
			nodes: []Node{node("a", awaitsBoot), node("b", bootedFor("", 1), with(func(n *Node) { n.ReadySince = ago(1) }))}, policy: two, want: "Updated", reporting: "waiting for b to be Ready for rollout.settle after a reboot",
		},
		"it has proved well":                        {nodes: []Node{node("a", awaitsBoot), node("b", bootedFor("", 1))}, policy: two, want: take},
		"it does not come back":                     {nodes: []Node{node("a", awaitsBoot), node("b", bootedFor("", 1), notReady)}, policy: two, want: "Updated", reporting: "waiting for b to be Ready for rollout.settle after a reboot"},
		"others wait for that not for ever":         {nodes: []Node{node("a", awaitsBoot), node("b", bootedFor("", 7), notReady)}, policy: two, want: take},
		"one of another kind":                       {nodes: []Node{node("a", awaitsBoot), node("b", bootedFor("", 1), notReady, with(func(n *Node) { n.Group.OSBuild = "10.0.17763" }))}, policy: two, want: take},
		"without canaries":                          {nodes: []Node{node("a", awaitsBoot), node("b", awaitsBoot, claim(1, true))}, policy: noCanaries, want: take},
		"a person asks, whatever else is the case":  {nodes: one(awaitsBoot, asksBoot, bootedFor("Updates", 1)), policy: fleetPaused, want: take, reporting: "reboot requested (annotation reboot)"},
		"the setting is changed before the permit":  {nodes: one(awaitsBoot, claim(5, true), with(func(n *Node) { n.Drained = true })), policy: func(*Policy) {}, want: "release cordon off scale-down off"},
		"Windows does not wait longer in that time": {nodes: one(awaitsBoot, claim(5, true), with(func(n *Node) { n.Boot.Windows = "" })), want: "release cordon off scale-down off"},
		"the node is drained":                       {nodes: one(awaitsBoot, claim(5, true), with(func(n *Node) { n.Drained = true })), want: "permit 1 reboot"},
	} {
		if tt.policy == nil {
			tt.policy = coordinate
		}
		d := decide(ruleCase{nodes: tt.nodes, policy: tt.policy})
		d.applyFirst(nodeRules())
		if tt.want == "note" {
			d.noteElapsed()
		}
		got, message := "", ""
		if steps := d.fleet.plan.Steps; len(steps) > 0 {
			got, message = strings.TrimPrefix(steps[0].text(), d.Name+" "), steps[0].Why
		} else if nodes := d.fleet.plan.Nodes; len(nodes) > 0 {
			got, message = string(nodes[0].Reason), nodes[0].Message
		}
		if got != tt.want || !strings.Contains(message, tt.reporting) {
			t.Errorf("%s: %q, want %q; %q, want %q", name, got, tt.want, message, tt.reporting)
		}
	}
}

// TestTheTurnOfABootForWindows: each boot has a request of its own, which changes nothing about a person's.
func TestTheTurnOfABootForWindows(t *testing.T) {
	byPerson := digest(7, "a")
	emptied := one(awaitsBoot, claim(5, true), with(func(n *Node) { n.Drained, n.State.Booted, n.Boot.Asked = true, byPerson, byPerson }))
	p := policy()
	p.WindowsBoots = true
	permit := func(now time.Time) Step {
		t.Helper()
		steps := NextSteps(ElapsedByStamps(Fleet{Nodes: emptied, Policy: p, Now: now})).Steps
		if len(steps) != 1 || steps[0].Action != ActionPermit {
			t.Fatalf("%+v", steps)
		}
		return steps[0]
	}
	first, second := permit(noon()), permit(noon().Add(time.Second))
	if first.Boot == "" || first.Boot == byPerson || first.Boot == second.Boot {
		t.Errorf("requests %s and %s", first.Boot, second.Boot)
	}
	if got, want := first.State.WindowsBoot, (WindowsBoot{Reasons: "Updates", Request: first.Boot, Begun: noon()}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	booted := emptied[0]
	booted.State, booted.Boot.Permitted, booted.Permitted, booted.Report.Rebooted = first.State, first.Boot, reboot, first.Boot
	steps := NextSteps(ElapsedByStamps(Fleet{Nodes: []Node{booted}, Policy: p, Now: noon().Add(5 * time.Minute)})).Steps
	if len(steps) != 1 || steps[0].Action != ActionRelease || steps[0].Boot != "" || steps[0].State.Booted != byPerson {
		t.Errorf("%+v", steps)
	}
}

// liar is a node that reports at each look that Windows waits for a boot, and boots when it may.
type liar struct {
	n     Node
	watch Watch
	boots int
}

// pass lets a minute pass for the node and the operator. Forget is what the node does to its own annotation.
func (l *liar) pass(p Policy, now time.Time, forget func(*State)) {
	n := &l.n
	if n.Boot.Permitted != "" && n.Report.Rebooted != n.Boot.Permitted {
		l.boots++
		n.Report.Rebooted = n.Boot.Permitted
	}
	forget(&n.State)
	n.Seen = l.watch.ObserveNode(*n, time.Minute)
	for _, s := range NextSteps(Fleet{Nodes: []Node{*n}, Policy: p, Now: now}).Steps {
		n.State = s.State
		if s.Permit != "" {
			n.Permitted, n.Boot.Permitted = s.Permit, s.Boot
		}
		n.cordonAs(s)
		n.Drained = s.Action == ActionDrain
	}
}

// TestANodeThatLiesBootsSeldom: a node that always reports that Windows waits for a boot boots once; one that reports each time another reason, or
// that removes the operator's note on it, not more than once in restAfterBoot.
func TestANodeThatLiesBootsSeldom(t *testing.T) {
	p := policy()
	p.WindowsBoots = true
	const hours = 48
	for name, tt := range map[string]struct {
		lie      func(minute int, n *Node)
		forget   func(*State)
		min, max int
	}{
		"always the same":   {func(int, *Node) {}, func(*State) {}, 1, 1},
		"now and then":      {func(m int, n *Node) { n.Boot.Windows = [...]string{"", "Updates"}[m/30%2] }, func(*State) {}, 2, hours / 6},
		"another each time": {func(m int, n *Node) { n.Boot.Windows = [...]string{"Files", "Updates"}[m/30%2] }, func(*State) {}, 2, hours / 6},
		"and forgets":       {func(int, *Node) {}, func(s *State) { s.WindowsBoot, s.Elapsed = WindowsBoot{}, Elapsed{} }, 2, hours / 6},
		"and ages": {func(int, *Node) {}, func(s *State) {
			s.WindowsBoot, s.Elapsed.Booted = WindowsBoot{Begun: s.WindowsBoot.Begun.Add(time.Second)}, 1_000_000
		}, 2, hours / 6},
	} {
		l := &liar{n: node("a", awaitsBoot)}
		for minute := range hours * 60 {
			tt.lie(minute, &l.n)
			l.pass(p, noon().Add(time.Duration(minute)*time.Minute), tt.forget)
		}
		if l.boots < tt.min || l.boots > tt.max {
			t.Errorf("%s: %d boots in %d hours, want %d to %d", name, l.boots, hours, tt.min, tt.max)
		}
	}
}

// TestBootsForWindowsArePredicted, one after the other.
func TestBootsForWindowsArePredicted(t *testing.T) {
	p := policy()
	p.WindowsBoots, p.MaxUnavailable = true, intstr.FromInt32(2)
	f := ElapsedByStamps(Fleet{Nodes: []Node{node("a", awaitsBoot), node("b", awaitsBoot)}, Policy: p, Now: noon()})
	prediction := PredictRollout(f, LearnDurations(Fleet{}))
	if prediction.WindowsBoots != 2 || prediction.Nodes+prediction.Boots != 0 || !prediction.Order[1].Windows || len(prediction.Left) != 0 || prediction.Order[1].Begins < prediction.Order[0].Ends+p.Settle {
		t.Errorf("%+v", prediction)
	}
}

// TestAnOperatorThatIsStartedKnowsTheLastBoot by the annotation of the Node.
func TestAnOperatorThatIsStartedKnowsTheLastBoot(t *testing.T) {
	n := node("a", awaitsBoot, bootedFor("", 1), with(func(n *Node) { n.State.Elapsed.Booted = 3600 }))
	var w Watch
	got := []time.Duration{w.ObserveNode(n, 0).Booted, w.ObserveNode(n, time.Minute).Booted}
	if want := []time.Duration{time.Hour, time.Hour + time.Minute}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
