package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// chance is where a run of the model takes its choices from: a seed, or the bytes of a fuzzer.
type chance interface{ IntN(n int) int }

// version is what all nodes of a group should have: for each impact a value whose change costs it.
type version struct {
	id     int
	values [4]int
	// urgent is the value of what must not wait, and costs nothing.
	urgent int
	// bad is true for one that works on no node.
	bad bool
}

var impacts = [4]bundle.Impact{bundle.ImpactNone, bundle.ImpactRestart, bundle.ImpactDrain, bundle.ImpactReboot}

// distance is the impact of going from one version to another.
func distance(a, b version) bundle.Impact {
	for i := 3; i > 0; i-- {
		if a.values[i] != b.values[i] {
			return impacts[i]
		}
	}
	return bundle.ImpactNone
}

func (v version) digest(node string) bundle.Digest {
	return bundle.Of(fmt.Appendf(nil, "%d, urgent %d of %s", v.id, v.urgent, node))
}

// soon is a version with the urgent part of another one.
func (v version) soon(want version) version {
	v.urgent = want.urgent
	return v
}

// machine is a node and its host.
type machine struct {
	// api is the stored Node; State is kept as text, as there.
	api   Node
	state string
	// version of the object, counted with each write.
	resource int

	// applied is what the host has, drift an impact that a repair needs.
	applied version
	drift   bundle.Impact
	// followed, permitted and hurried are what the agent has acted on; busy is what it does.
	followed  bundle.Digest
	permitted bundle.Impact
	hurried   bool
	busy      bundle.Impact
	booting   bool
	// rebooted is the request that the host was booted for last, requests are all of them, and atHand is true while it boots for one.
	rebooted bundle.Digest
	requests []bundle.Digest
	atHand   bool
	// windows is when the host booted last for what Windows waited for.
	windows time.Duration
	// off hosts do nothing, dumb ones have no agent.
	off, dumb bool
	// full is true while the disk of the host has no room, locked while the host refuses changes.
	full    bool
	locked  bool
	pods    int
	blocked bool

	// adminCordon and userScaleDown are true while another user did it; available is true if a rollout took the node while it worked.
	adminCordon, userScaleDown, available bool
	// meddled is true while a user has uncordoned the node in its turn.
	meddled bool
	// ahead is by how much its clock is ahead of the true time.
	ahead time.Duration
}

// operator is one process; what it sees is a snapshot of some moment.
type operator struct {
	view []Node
	rv   map[string]int
	// watches are what it has observed of each node, the last time at looked; ahead is by how much its clock is ahead of the true time.
	watches map[string]*Watch
	looked  time.Duration
	ahead   time.Duration
}

// world is the model.
type world struct {
	t *testing.T
	r chance
	// elapsed is the true time, which no clock tells.
	elapsed  time.Duration
	policy   Policy
	machines []*machine
	// wanted are the versions by group, versions all by the digest of a node's bundle.
	wanted   map[Group]version
	versions map[bundle.Digest]version
	next     int
	names    int
	ops      []*operator
	// two is true once there were two operators, peak the largest limit that there was.
	two  bool
	peak int
	// exposed are the nodes that a bad version was published on, excused how many more may be: canaries were replaced.
	exposed map[string]map[string]bool
	excused map[string]int
	counts  map[string]int
}

var groups = []Group{{bundle.PlatformAWS, "10.0.20348"}, {bundle.PlatformNone, "10.0.17763"}}

func newWorld(t *testing.T, r chance) *world {
	w := &world{
		t: t, r: r, wanted: map[Group]version{}, versions: map[bundle.Digest]version{},
		exposed: map[string]map[string]bool{}, excused: map[string]int{}, counts: map[string]int{}, ops: []*operator{{}},
	}
	w.policy = Policy{
		MaxUnavailable: []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromInt32(3), intstr.FromString("30%")}[r.IntN(4)],
		MaxParallel:    1 + r.IntN(4), Canaries: r.IntN(3), FailureLimit: 1 + r.IntN(3), Settle: 2 * time.Minute, Timeout: 30 * time.Minute,
		WindowsBoots: r.IntN(2) == 0,
	}
	for _, g := range groups {
		w.wanted[g] = version{}
	}
	for range 2 + r.IntN(7) {
		w.add()
	}
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, m := range w.machines {
		w.t.Logf("%s", w.show(m))
	}
	w.t.Logf("policy %+v, %d operators", w.policy, len(w.ops))
	w.t.Fatalf(format, args...)
}

func (w *world) show(m *machine) string {
	n := w.observe(m)
	v := w.versions[m.api.Published]
	return fmt.Sprintf("%s has %d wants %d published %d at most %s; agent %s impact %q busy %q; ready %t cordoned %t for %q drained %t pods %d off %t dumb %t paused %t leaving %q failed %.8s claim %+v turn %+v",
		n.Name, m.applied.id, w.wanted[n.Group].id, v.id, n.Permitted, n.Report.State, n.Report.Impact, m.busy, n.Ready, n.Unschedulable, n.CordonedFor, n.Drained, m.pods, m.off, m.dumb, n.Paused, n.Leaving, n.State.Failed, n.State.Slot, n.State.Turn)
}

func (w *world) limit() int { return w.policy.unavailableLimit(len(w.machines)) }

// add adds a node that has its wanted bundle, or an old one.
func (w *world) add() {
	w.names++
	m := &machine{resource: 1, drift: bundle.ImpactNone, pods: 3}
	m.api = Node{Name: fmt.Sprintf("win-%03d", w.names), Group: groups[w.r.IntN(len(groups))], Ready: true, ReadySince: w.clock(0)}
	if w.r.IntN(2) == 0 {
		m.applied = w.wanted[m.api.Group]
		if m.applied.bad {
			m.applied = version{}
		}
	}
	w.machines = append(w.machines, m)
	w.excuseReplacement(m)
	w.peak = max(w.peak, w.limit())
}

// observe is what an operator reads of a node.
func (w *world) observe(m *machine) Node {
	n := m.api
	state, err := windowsnode.DecodeRolloutState(m.state)
	if err != nil {
		w.fatalf("%s: %v", n.Name, err)
	}
	want := w.wanted[n.Group]
	n.State, n.Drained = state, m.pods == 0
	n.Wanted, n.Target = want.digest(n.Name), want.digest("all")
	w.versions[n.Wanted] = want
	if has := m.applied; has.id >= 0 && has.urgent != want.urgent {
		n.Urgent = Urgent{Bundle: has.soon(want).digest(n.Name), Cost: bundle.ImpactNone, Inputs: []UrgentInput{{Text: "the CA"}}}
		w.versions[n.Urgent.Bundle] = has.soon(want)
	}
	if n.Cost = distance(m.applied, want); w.r.IntN(8) == 0 {
		n.Cost = "" // it is not always known
	}
	if n.State.Slot.IsZero() && n.Ready && !n.Unschedulable && m.pods < 3 {
		n.Unsettled = "pods are not back"
	}
	n.Silent = m.dumb && n.Ready
	return n
}

// refresh is a new snapshot.
func (w *world) refresh(o *operator) {
	if o.watches == nil {
		o.watches = map[string]*Watch{}
	}
	passed := w.elapsed - o.looked
	o.view, o.rv, o.looked = nil, map[string]int{}, w.elapsed
	for _, m := range w.machines {
		n, watch := w.observe(m), o.watches[m.api.Name]
		if watch == nil {
			watch = &Watch{}
			o.watches[n.Name] = watch
			watch.ObserveNode(n, 0)
		} else {
			watch.ObserveNode(n, passed)
		}
		n.Seen = watch.seen
		o.view = append(o.view, n)
		o.rv[m.api.Name] = m.resource
	}
}

// clock is what a clock shows that is ahead by some time.
func (w *world) clock(ahead time.Duration) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(w.elapsed + ahead)
}

// jump sets the clock of an operator or of a host, by hours and by seconds.
func (w *world) jump() {
	by := time.Duration(w.r.IntN(48)-24)*time.Hour + time.Duration(w.r.IntN(60))*time.Second
	if w.r.IntN(2) == 0 {
		w.ops[w.r.IntN(len(w.ops))].ahead = by
		return
	}
	w.machines[w.r.IntN(len(w.machines))].ahead = by
}

// isFresh reports whether nothing has changed since.
func (w *world) isFresh(o *operator) bool {
	if len(o.view) != len(w.machines) {
		return false
	}
	for _, m := range w.machines {
		if o.rv[m.api.Name] != m.resource {
			return false
		}
	}
	return true
}

func (w *world) machine(name string) *machine {
	if i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.api.Name == name }); i >= 0 {
		return w.machines[i]
	}
	return nil
}

// plan lets an operator decide and make steps; it may be killed between two.
func (w *world) plan(o *operator, kills bool) int {
	f := Fleet{Nodes: o.view, Policy: w.policy, Now: w.clock(o.ahead)}
	p := NextSteps(f)
	w.checkPlan(f, p)
	made := 0
	for _, s := range p.Steps {
		if kills && w.r.IntN(8) == 0 {
			break
		}
		m := w.machine(s.Node)
		if m == nil || m.resource != o.rv[s.Node] {
			continue // refused: the Node is gone, or has changed
		}
		w.checkStep(o, m, s)
		w.make(m, s)
		if s.Action != ActionNote && (s.Action != ActionDrain || s.Cordon != SwitchKeep) {
			made++
		}
		w.checkWorld()
	}
	return made
}

// make writes a step.
func (w *world) make(m *machine, s Step) {
	w.counts[string(s.Action)]++
	n := &m.api
	if s.Action == ActionReserve {
		m.available = n.Ready && !n.Unschedulable && n.Leaving == ""
		m.meddled = false
	}
	text, err := s.State.Encode()
	if err != nil {
		w.fatalf("%v", err)
	}
	if text != m.state || s.Cordon != SwitchKeep || s.Permit != "" {
		m.resource++
	}
	m.state = text
	n.cordonAs(s)
	if s.ScaleDown != SwitchKeep {
		n.ScaleDownDisabled = s.ScaleDown == SwitchOn
	}
	if s.Bundle != "" {
		n.Published, n.Permitted, n.PublishedUrgent, n.Boot.Permitted = s.Bundle, s.Permit, s.Urgent, s.Boot
		w.expose(m, s)
	}
	if s.Action == ActionDrain && !m.blocked {
		m.pods = max(0, m.pods-2)
	}
}

// agent lets the agent of a host act.
func (w *world) agent(m *machine) {
	if m.off || m.dumb {
		return
	}
	if m.busy != "" {
		w.finish(m)
		return
	}
	if m.atHand {
		m.atHand, m.rebooted = false, m.requests[0]
		m.api.Boot.Windows = [...]string{"", "Files", "Files,Updates"}[w.r.IntN(3)] // Windows may wait again, or a node may lie
		w.ready(m, true)
		w.report(m, m.api.Report)
		return
	}
	if m.api.Published == "" || m.api.Paused && !m.api.PublishedUrgent && !m.api.Joining {
		return
	}
	if m.followed == m.api.Published && m.permitted == m.api.Permitted && m.hurried == m.api.PublishedUrgent && m.api.Report.State != published.StateFailed {
		w.bootAtHand(m)
		return
	}
	w.follow(m)
}

// isDisrupted reports whether the agent does what the node was drained for.
func (m *machine) isDisrupted() bool {
	return m.atHand || m.busy == bundle.ImpactDrain || m.busy == bundle.ImpactReboot
}

// bootAtHand boots the host where that is asked for and permitted, once.
func (w *world) bootAtHand(m *machine) {
	n := &m.api
	asked := n.Boot.Permitted
	if asked == "" || n.Permitted != bundle.ImpactReboot || slices.Contains(m.requests, asked) || n.Paused {
		return
	}
	if !n.Joining && !m.meddled && (m.pods > 0 || !n.Unschedulable) {
		w.fatalf("%s boots and has %d pods", n.Name, m.pods)
	}
	w.counts["boots"]++
	w.checkWindowsBoot(m)
	m.requests, m.atHand = append([]bundle.Digest{asked}, m.requests...), true
	w.ready(m, false)
}

// checkWindowsBoot checks that a host rests between boots for Windows, whatever it reports.
func (w *world) checkWindowsBoot(m *machine) {
	state, err := windowsnode.DecodeRolloutState(m.state)
	if err != nil || state.WindowsBoot.Request != m.api.Boot.Permitted {
		return // a person asked for it
	}
	if rested := w.elapsed - m.windows; m.windows > 0 && rested < restAfterBoot {
		w.fatalf("%s boots for Windows %s after the last time", m.api.Name, rested)
	}
	m.windows = w.elapsed
	w.counts["boots for Windows"]++
}

func (w *world) follow(m *machine) {
	n := &m.api
	before := n.Report
	m.followed, m.permitted, m.hurried = n.Published, n.Permitted, n.PublishedUrgent
	to := w.versions[n.Published]
	if before.State == published.StateRolledBack && before.Desired == n.Published {
		return
	}
	need := distance(m.applied, to)
	if !n.PublishedUrgent {
		need = largerImpact(need, m.drift)
	}
	if m.full && (m.applied != to || need != bundle.ImpactNone) {
		w.report(m, published.Report{State: published.StateFailed, Fault: published.FaultDisk, Desired: n.Published, Message: "waits for room"})
		w.counts["full"]++
		w.excuse(m) // another node is the canary, and this one follows when it has room
		return
	}
	switch {
	case need.Rank() > n.Permitted.Rank():
		w.report(m, published.Report{State: published.StateNeedsPermission, Desired: n.Published, Impact: need})
	case need == bundle.ImpactNone && !to.bad:
		if n.Paused && to.values != m.applied.values {
			w.fatalf("%s is paused, and more changes than what is urgent", n.Name)
		}
		m.applied = to
		w.report(m, published.Report{State: published.StateApplied, Desired: n.Published, Applied: n.Published})
	case need == bundle.ImpactNone:
		w.report(m, published.Report{State: published.StateRolledBack, Desired: n.Published, Message: "bad"})
	default:
		if need.Rank() >= bundle.ImpactDrain.Rank() && !n.Joining && !m.meddled && (m.pods > 0 || !n.Unschedulable) {
			w.fatalf("%s changes with impact %s and has %d pods", n.Name, need, m.pods)
		}
		m.busy = need
		w.report(m, published.Report{State: published.StateApplying, Desired: n.Published})
		w.ready(m, need == bundle.ImpactDrain)
	}
}

// finish ends what an agent does.
func (w *world) finish(m *machine) {
	if m.busy == bundle.ImpactReboot && !m.booting {
		m.booting = true
		w.ready(m, false)
		w.report(m, published.Report{State: published.StateRebootPending, Desired: m.followed})
		return
	}
	to := w.versions[m.followed]
	m.busy, m.booting = "", false
	w.ready(m, true)
	switch {
	case m.locked && w.r.IntN(2) == 0:
		w.report(m, published.Report{State: published.StateFailed, Fault: published.FaultHost, Desired: m.followed, Message: "locked"})
		m.permitted = "" // it is tried once more
	case m.locked:
		w.report(m, published.Report{State: published.StateRolledBack, Fault: published.FaultHost, Desired: m.followed, Message: "locked"})
		w.counts["locked"]++
		w.excuse(m) // another node is the canary
	case to.bad && w.r.IntN(3) == 0:
		w.report(m, published.Report{State: published.StateFailed, Desired: m.followed, Message: "bad"})
		m.permitted = "" // it is retried
	case to.bad:
		w.report(m, published.Report{State: published.StateRolledBack, Desired: m.followed, Message: "bad"})
	default:
		m.applied, m.drift = to, bundle.ImpactNone
		w.report(m, published.Report{State: published.StateApplied, Desired: m.followed, Applied: m.followed})
	}
}

func (w *world) report(m *machine, r published.Report) {
	if (r.State == published.StateApplied) != (m.api.Report.State == published.StateApplied) {
		m.api.Since = w.clock(m.ahead)
	}
	r.Features, r.Rebooted, r.Facts = []published.Feature{published.FeatureBoot}, m.rebooted, &bundle.Facts{}
	m.api.Report = r
	m.resource++
}

func (w *world) ready(m *machine, ready bool) {
	if m.api.Ready != ready {
		if ready {
			w.excuseReplacement(m)
		}
		m.api.Ready, m.api.ReadySince = ready, w.clock(m.ahead)
		m.resource++
	}
}

// settle brings pods back where they may run.
func (w *world) settle(m *machine) {
	if m.api.Ready && !m.api.Unschedulable {
		m.pods = 3
	}
}

// cordonAs applies the cordon of a step to a Node.
func (n *Node) cordonAs(s Step) {
	switch s.Cordon {
	case SwitchOn:
		n.Unschedulable, n.CordonedFor = true, published.CordonedForRollout
	case SwitchOff:
		n.Unschedulable, n.CordonedFor = false, ""
	case SwitchKeep:
	}
}
