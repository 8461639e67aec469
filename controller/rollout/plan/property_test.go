package plan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// stepsVariable is how many events the fleets of TestRandomFleets go through.
const stepsVariable = "WMCO_ROLLOUT_STEPS"

func TestRandomFleets(t *testing.T) {
	steps, err := strconv.Atoi(os.Getenv(stepsVariable))
	if err != nil {
		steps = 20_000
	}
	counts := map[string]int{}
	for seed := uint64(1); steps > 0; seed++ {
		w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
		t.Logf("seed %d", seed)
		for range 6 {
			events := 50 + w.r.IntN(200)
			for range events {
				w.event()
			}
			w.heal()
			steps -= events
		}
		for k, n := range w.counts {
			counts[k] += n
		}
	}
	t.Logf("steps: %v", counts)
	for _, a := range []Action{ActionPublish, ActionPermit, ActionReserve, ActionConfirmReservation, ActionCancelReservation, ActionDrain, ActionRelease, ActionConfirm, ActionNote, "boots", "boots for Windows"} {
		if counts[string(a)] == 0 {
			t.Errorf("no step %s was made", a)
		}
	}
}

// bytes are the choices of a fuzzer. When they are used up, nothing is chosen any more.
type choices struct{ data []byte }

func (c *choices) IntN(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := int(c.data[0])
	c.data = c.data[1:]
	return b % n
}

func FuzzFleets(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 400)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data: data[:min(len(data), 1024)]}
		w := newWorld(t, c)
		for len(c.data) > 0 {
			w.event()
		}
		w.heal()
	})
}

// event is one thing that happens.
func (w *world) event() {
	m := w.machines[w.r.IntN(len(w.machines))]
	n := &m.api
	switch e := w.r.IntN(109); {
	case e < 30:
		w.agent(m)
	case e < 52:
		o := w.ops[w.r.IntN(len(w.ops))]
		if o.view == nil || w.r.IntN(4) > 0 {
			w.refresh(o)
		}
		w.plan(o, true)
	case e < 56:
		w.refresh(w.ops[w.r.IntN(len(w.ops))]) // its next decision is from this moment
	case e < 66:
		w.elapsed += time.Duration(w.r.IntN(240)) * time.Second
	case e < 70:
		w.settle(m)
	case e < 74:
		w.change()
	case e < 76:
		m.blocked = !m.blocked
	case e < 80:
		w.cordon(m)
	case e < 82:
		n.Paused = !n.Paused
		m.resource++
		w.excuse(m)
	case e < 83:
		w.policy.Paused = !w.policy.Paused
	case e < 85:
		w.membership(m)
	case e < 88:
		w.host(m)
	case e < 90:
		n.Leaving = map[bool]string{true: "its Machine is being deleted"}[n.Leaving == ""]
		m.resource++
		w.excuse(m)
	case e < 92:
		w.operators()
	case e < 94 && m.busy == "" && n.Report.State == published.StateApplied && n.Ready:
		m.drift = impacts[w.r.IntN(4)]
		if m.drift.Rank() > bundle.ImpactRestart.Rank() && m.drift.Rank() > n.Permitted.Rank() {
			w.report(m, published.Report{State: published.StateNeedsPermission, Desired: n.Published, Applied: n.Published, Impact: m.drift})
		} else {
			m.drift = bundle.ImpactNone // the agent repairs it
		}
	case e < 95 && n.State.Slot.IsZero() && !n.ScaleDownDisabled:
		n.ScaleDownDisabled, m.userScaleDown = true, true
		m.resource++
	case e < 97 && n.Report.State == published.StateRolledBack:
		n.Report = published.Report{} // a person asks for another try
		n.Retry = fmt.Sprint(w.elapsed)
		m.followed = ""
		m.resource++
		w.excuse(m)
	case e < 99:
		w.jump()
	case e < 100:
		w.away()
	case e < 101:
		m.full = !m.full
	case e < 103: // a person asks for a boot
		n.Boot.Asked = bundle.Of(fmt.Appendf(nil, "%d", w.elapsed))
		m.resource++
	case e < 107 && e >= 105:
		m.locked = !m.locked
	case e >= 107: // others replace the annotation
		w.excuse(m)
		replaced(n)
		n.PublishedUrgent = false
		m.resource++
	case e < 105 && n.Report.Facts != nil: // Windows waits for a boot, or no longer
		n.Boot.Windows = [...]string{"", "Updates", "Components,Updates"}[w.r.IntN(3)]
		m.resource++
	}
	w.checkWorld()
}

// away lets time pass in which no operator looks: they are started again.
func (w *world) away() {
	w.elapsed += time.Duration(w.r.IntN(12)) * time.Hour
	for i := range w.ops {
		w.ops[i] = &operator{ahead: w.ops[i].ahead}
	}
}

// change changes the wanted bundle, or only its urgent part.
func (w *world) change() {
	if w.r.IntN(4) == 0 {
		w.renew()
		return
	}
	g := groups[w.r.IntN(len(groups))]
	w.next++
	v := w.wanted[g]
	v.id, v.bad = w.next, w.r.IntN(4) == 0
	v.values[w.r.IntN(4)] = w.next
	for _, o := range groups {
		if o == g || w.r.IntN(2) == 0 {
			w.wanted[o] = v
		}
	}
}

// renew changes the urgent part, for all nodes.
func (w *world) renew() {
	w.next++
	for _, g := range groups {
		v := w.wanted[g]
		v.urgent = w.next
		w.wanted[g] = v
	}
}

// cordon is what an administrator does.
func (w *world) cordon(m *machine) {
	n := &m.api
	switch {
	case m.adminCordon:
		m.adminCordon, n.Unschedulable = false, false
		m.meddled = true
	case !n.Unschedulable && n.CordonedFor == "": // while our mark is there, the owner of the cordon cannot be told
		m.adminCordon, n.Unschedulable = true, true
	case n.CordonedFor != "" && w.r.IntN(4) == 0:
		n.Unschedulable = false
		m.meddled = true
	default:
		return
	}
	m.resource++
}

// membership adds, removes and re-images nodes.
func (w *world) membership(m *machine) {
	switch {
	case w.r.IntN(3) == 0 && len(w.machines) < 10:
		w.add()
	case w.r.IntN(2) == 0 && len(w.machines) > 2:
		w.excuse(m)
		w.machines = slices.DeleteFunc(w.machines, func(x *machine) bool { return x == m })
	default:
		m.applied, m.followed, m.busy, m.booting, m.pods = version{id: -1, values: [4]int{-1, -1, -1, -1}}, "", "", false, 0
		m.requests, m.rebooted, m.atHand = nil, "", false
		m.api.Report = published.Report{}
		m.resource++
		w.excuse(m)
	}
}

// host switches hosts and agents off and on.
func (w *world) host(m *machine) {
	switch {
	case m.off:
		m.off = false
		w.ready(m, !m.booting)
	case m.dumb:
		m.dumb = false
	case w.r.IntN(3) == 0:
		m.dumb = true
		m.resource++
	default:
		m.off = true
		w.ready(m, false)
	}
	w.excuse(m)
}

// operators starts and stops a second operator, or restarts one: it remembers nothing but what it sees now.
func (w *world) operators() {
	switch {
	case len(w.ops) == 2:
		w.ops = w.ops[w.r.IntN(2):][:1]
	case w.r.IntN(2) == 0:
		w.ops, w.two = append(w.ops, &operator{}), true
	default:
		w.ops[0] = &operator{}
	}
}

// expose notes who sees a version that works nowhere.
func (w *world) expose(m *machine, s Step) {
	v := w.versions[s.Bundle]
	if !v.bad || m.api.Joining {
		return
	}
	k := key(v, m.api.Group)
	if w.exposed[k] == nil {
		w.exposed[k] = map[string]bool{}
	}
	w.exposed[k][m.api.Name] = true
}

func key(v version, g Group) string {
	return fmt.Sprintf("%d, urgent %d, %s", v.id, v.urgent, g.OSBuild)
}

// excuse allows another canary: something was done to this node, which may be one.
func (w *world) excuse(m *machine) {
	published, wanted := key(w.versions[m.api.Published], m.api.Group), key(w.wanted[m.api.Group], m.api.Group)
	w.excused[published]++
	if wanted != published {
		w.excused[wanted]++
	}
}

// excuseReplacement allows a node that is added, or Ready again, to be the canary in place of one that has the bundle and does not respond: that
// one proves nothing.
func (w *world) excuseReplacement(m *machine) {
	want := w.wanted[m.api.Group]
	if slices.ContainsFunc(w.machines, func(x *machine) bool {
		return x != m && x.api.Group == m.api.Group && (x.off || x.dumb) && x.api.Published == want.digest(x.api.Name)
	}) {
		w.excused[key(want, m.api.Group)]++
	}
}

// checkStep checks a step that is about to be written.
func (w *world) checkStep(o *operator, m *machine, s Step) {
	n := w.observe(m)
	drastic := s.Permit == bundle.ImpactDrain || s.Permit == bundle.ImpactReboot
	switch {
	case s.Action == ActionDrain && !n.State.Slot.Held:
		w.fatalf("%s is drained without a held claim", n.Name)
	case drastic && !n.Joining && (!n.State.Slot.Held || !n.Unschedulable || m.pods > 0 && !m.meddled):
		w.fatalf("%s: %s permits %s", n.Name, s.Action, s.Permit)
	case s.Cordon == SwitchOff && m.isDisrupted() && o.view[slices.IndexFunc(o.view, func(v Node) bool { return v.Name == n.Name })].Seen.Permitted < w.policy.Timeout:
		w.fatalf("%s is released while its agent is at work", n.Name)
	case s.Cordon == SwitchOff && m.adminCordon:
		w.fatalf("%s is uncordoned, and an administrator cordoned it", n.Name)
	}
	if s.Action == ActionConfirmReservation && w.isFresh(o) && n.Ready && w.unavailable() > w.limit() {
		w.fatalf("%s is held while %d nodes are unavailable", n.Name, w.unavailable())
	}
	if s.Permit == bundle.ImpactRestart && s.Action != ActionRelease {
		restarting := 1
		for _, x := range w.machines {
			n := w.observe(x)
			if i := slices.IndexFunc(o.view, func(v Node) bool { return v.Name == n.Name }); i >= 0 {
				n.Seen = o.view[i].Seen
			}
			y := evaluateNode(n, &w.policy)
			restarting += boolToInt(x != m && y.isRestarting())
		}
		allowed := w.policy.MaxParallel
		if w.two || !w.isFresh(o) {
			allowed *= 2
		}
		if w.isFresh(o) && !w.two && restarting > allowed {
			w.fatalf("%s is the %dth that restarts, of %d", n.Name, restarting, allowed)
		}
	}
}

// unavailable counts the nodes that cannot run pods.
func (w *world) unavailable() int {
	away := 0
	for _, m := range w.machines {
		n := m.api
		away += boolToInt(!n.Ready || n.Unschedulable || n.Leaving != "")
	}
	return away
}

// checkWorld checks what must always hold.
func (w *world) checkWorld() {
	held := 0
	for _, m := range w.machines {
		n := w.observe(m)
		held += boolToInt(n.State.Slot.Held && m.available)
		if m.adminCordon && !n.Unschedulable {
			w.fatalf("%s is uncordoned", n.Name)
		}
		if m.userScaleDown && !n.ScaleDownDisabled {
			w.fatalf("%s: another owner's annotation for the autoscaler is gone", n.Name)
		}
		if n.Unschedulable && !m.adminCordon && n.CordonedFor == "" {
			w.fatalf("%s is cordoned by us without our mark", n.Name)
		}
	}
	if held > w.peak {
		w.fatalf("%d nodes are away because of us, of %d", held, w.peak)
	}
	for k, nodes := range w.exposed {
		allowed := w.policy.Canaries
		if allowed == 0 {
			continue
		}
		if w.two {
			allowed *= 2
		}
		if len(nodes) > allowed+w.excused[k] {
			w.fatalf("version %s, which works nowhere, was published on %v; canaries %d, excused %d", k, nodes, w.policy.Canaries, w.excused[k])
		}
	}
}

// checkPlan checks a decision against what it was made from.
func (w *world) checkPlan(f Fleet, p Plan) {
	seen, noting := map[string]bool{}, map[string]bool{}
	for _, s := range p.Steps {
		i := slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == s.Node })
		n := f.Nodes[i]
		asks := n.Boot.Asked != "" && n.Boot.Asked != n.State.Booted && n.Boot.Asked != n.Report.Rebooted
		begins := s.Action == ActionReserve || s.Action == ActionConfirmReservation || s.Action == ActionDrain || s.Action == ActionPublish && s.Permit != bundle.ImpactNone
		switch {
		case seen[s.Node]:
			w.fatalf("two steps for %s", s.Node)
		case begins && n.Published != "" && (n.Leaving != "" || n.Paused || f.Policy.Paused && !asks) && !n.Joining:
			w.fatalf("%s begins with %s: leaving %q, paused %t, fleet %t", s.Node, s.Action, n.Leaving, n.Paused, f.Policy.Paused)
		case s.Action == ActionPublish && !s.Urgent && (n.Paused || f.Policy.Paused) && !n.Joining:
			w.fatalf("%s gets a change that is not urgent: paused %t, fleet %t", s.Node, n.Paused, f.Policy.Paused)
		case s.Urgent && (s.Action != ActionPublish || s.Bundle != n.Urgent.Bundle || s.Permit != bundle.ImpactNone || s.Cordon != SwitchKeep || s.ScaleDown != SwitchKeep || s.State.Slot != n.State.Slot):
			w.fatalf("%s: more is done than the urgent change: %+v", s.Node, s)
		case s.Why == "" || s.Action == "":
			w.fatalf("a step without a reason: %+v", s)
		}
		seen[s.Node] = true
		if noted := s.State; s.Action == ActionNote {
			delete(seen, s.Node) // what the node waits for is told all the same
			noted.Elapsed, noted.Turn.Permitted, noted.Turn.Ended, noted.Turn.Confirmed, noted.Turn.Retry = n.State.Elapsed, n.State.Turn.Permitted, n.State.Turn.Ended, n.State.Turn.Confirmed, n.State.Turn.Retry
			noted.WindowsBoot.Reasons = n.State.WindowsBoot.Reasons
			if !reflect.DeepEqual(noted, n.State) || s.Bundle != "" || s.Cordon != SwitchKeep || s.ScaleDown != SwitchKeep {
				w.fatalf("%s: more than times is noted: %+v", s.Node, s)
			}
			noting[s.Node] = true
		}
	}
	if len(p.Nodes) != len(f.Nodes) || p.Fleet.Updated+p.Fleet.Updating+p.Fleet.Waiting+p.Fleet.Degraded != len(f.Nodes) || p.Fleet.Message == "" {
		w.fatalf("%d nodes are explained, of %d: %+v", len(p.Nodes), len(f.Nodes), p.Fleet)
	}
	for _, n := range p.Nodes {
		if n.Message == "" || n.Reason == "" || !noting[n.Node] && (n.Reason == ReasonStep) != seen[n.Node] {
			w.fatalf("%+v", n)
		}
	}
}

// heal ends all faults but one that must not keep the others, makes the inputs good, and expects that every node arrives.
func (w *world) heal() {
	w.policy.Paused = false
	w.machines = slices.DeleteFunc(w.machines, func(m *machine) bool { return m.api.Leaving != "" })
	if len(w.machines) == 0 {
		w.add()
	}
	for _, m := range w.machines {
		m.api.Leaving, m.api.Paused, m.off, m.dumb, m.blocked, m.full, m.locked = "", false, false, false, false, false, false
		if m.adminCordon {
			m.adminCordon, m.api.Unschedulable, m.meddled = false, false, true
		}
		w.ready(m, !m.booting)
		m.resource++
	}
	w.ops = []*operator{{}}
	w.hurry()
	w.next++
	for _, g := range groups {
		v := version{id: w.next, values: w.wanted[g].values, urgent: w.wanted[g].urgent}
		v.values[w.r.IntN(4)] = w.next
		w.wanted[g] = v
	}
	exempt := w.handicap()
	for range 40 * (len(w.machines) + 2) {
		if w.round() == 0 && w.arrived(exempt) {
			w.rested(exempt)
			w.released()
			return
		}
	}
	f := Fleet{Nodes: w.ops[0].view, Policy: w.policy, Now: w.clock(0)}
	for _, n := range NextSteps(f).Nodes {
		w.t.Logf("%+v", n)
	}
	w.fatalf("not all nodes arrive; exempt %v", exempt)
}

// hurry pauses the fleet, and expects that the urgent part reaches every node that has anything.
func (w *world) hurry() {
	if w.r.IntN(2) == 0 {
		return
	}
	w.policy.Paused = true
	w.renew()
	for range 40 {
		w.round()
		if !slices.ContainsFunc(w.machines, func(m *machine) bool { return !w.reached(m) }) {
			w.policy.Paused = false
			return
		}
	}
	w.fatalf("an urgent change does not reach all nodes of a paused fleet")
}

// reached reports whether a node has the urgent part; one that has nothing yet cannot get it alone.
func (w *world) reached(m *machine) bool {
	return m.applied.id < 0 || m.applied.urgent == w.wanted[m.api.Group].urgent
}

// handicap leaves one node with a fault.
func (w *world) handicap() *machine {
	m := w.machines[w.r.IntN(len(w.machines))]
	switch x := w.r.IntN(8); {
	case x == 0 && w.limit() > 1:
		m.off = true
		w.ready(m, false)
	case x == 1 && w.limit() > 1: // it may be in its turn
		m.dumb = true
		m.resource++
		return m
	case x == 2:
		m.blocked = true
	case x == 5:
		m.full = true
	case x == 6: // it is no verdict about the bundle
		m.locked = true
	case x == 3:
		m.api.Paused = true
		m.resource++
	case x == 4 && w.limit() > 1 && !m.api.Unschedulable && m.api.CordonedFor == "":
		m.api.Unschedulable, m.adminCordon = true, true
		m.resource++
	default:
		return nil
	}
	return m
}

// round lets everything act once, and returns how many steps were made.
func (w *world) round() int {
	for _, m := range w.machines {
		w.agent(m)
		w.settle(m)
	}
	w.refresh(w.ops[0])
	made := w.plan(w.ops[0], false)
	w.elapsed += 2 * time.Minute
	if w.r.IntN(8) == 0 {
		w.jump()
	}
	w.checkWorld()
	return made
}

// arrived reports whether every node but one has its wanted bundle.
func (w *world) arrived(exempt *machine) bool {
	if exempt != nil && exempt.api.Paused && !w.reached(exempt) {
		return false
	}
	return !slices.ContainsFunc(w.machines, func(m *machine) bool {
		n := evaluateNode(w.observe(m), &w.policy)
		return m != exempt && (!n.upToDate || n.bootAsked() || !n.State.Slot.IsZero() || n.cordonedByUs())
	})
}

// rested checks that nothing of us is left where nothing is left to do.
func (w *world) rested(exempt *machine) {
	for _, m := range w.machines {
		n := w.observe(m)
		if m == exempt {
			continue
		}
		if n.Unschedulable || n.CordonedFor != "" || n.Permitted == bundle.ImpactDrain || n.Permitted == bundle.ImpactReboot || n.ScaleDownDisabled != m.userScaleDown || m.applied.id != w.next {
			w.fatalf("%s is left behind", n.Name)
		}
		if asked := n.Boot.Asked; asked != "" && !slices.Contains(m.requests, asked) && n.State.Booted != asked {
			w.fatalf("%s was not booted", n.Name)
		}
	}
}

// released ends the last fault.
func (w *world) released() {
	for _, m := range w.machines {
		m.off, m.dumb, m.blocked, m.full, m.locked, m.api.Paused = false, false, false, false, false, false
		if m.api.Report.State == published.StateRolledBack && m.api.Report.BlamesHost() { // a person asks for another try
			m.api.Report, m.api.Retry, m.followed = published.Report{}, fmt.Sprint(w.elapsed), ""
		}
		if m.adminCordon {
			m.adminCordon, m.api.Unschedulable, m.meddled = false, false, true
		}
		w.ready(m, !m.booting)
		m.resource++
	}
	for range 40 * (len(w.machines) + 2) {
		if w.round() == 0 && w.arrived(nil) {
			w.rested(nil)
			return
		}
	}
	w.fatalf("the last node does not arrive")
}
