package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/report/fleet"
)

// fleetView is the nodes and hosts of a cluster.
type fleetView struct {
	States   []count
	Operator fleet.Operator
	Problems []metav1.Condition
	Groups   []stateGroup
	Hosts    []status.Host
	More     int
}

// count is how many nodes are in a state.
type count struct {
	State string
	Nodes int
}

// stateGroup is nodes of which the same is said.
type stateGroup struct {
	State, Reason, Message, Fix string
	// IsOpen is true for nodes that need something.
	IsOpen bool
	Nodes  []nodeRow
}

// nodeRow is one node.
type nodeRow struct{ Name, Desired, Applied, Since, Agent string }

func fleetOf(p Page) *fleetView {
	if p.Fleet == nil {
		return nil
	}
	v := &fleetView{States: countStates(p.Fleet.Nodes), Operator: p.Fleet.Operator, Problems: p.Fleet.Problems(), Hosts: p.Fleet.Others(), More: p.Fleet.MoreHosts}
	at := map[[4]string]int{}
	for _, r := range p.Fleet.Nodes {
		key := [4]string{string(r.State), r.Reason, generic(r.Message, r.Node), generic(r.Fix, r.Node)}
		isWell := r.State == nodestate.Updated && r.IsReady()
		if isWell {
			key = [4]string{string(r.State)}
		}
		i, ok := at[key]
		if !ok {
			i = len(v.Groups)
			at[key] = i
			v.Groups = append(v.Groups, stateGroup{State: key[0], Reason: key[1], Message: key[2], Fix: key[3], IsOpen: key[3] != ""})
		}
		if len(v.Groups[i].Nodes) == 0 && !isWell {
			v.Groups[i].Message, v.Groups[i].Fix = r.Message, r.Fix
		} else {
			v.Groups[i].Message, v.Groups[i].Fix = key[2], key[3]
		}
		v.Groups[i].Nodes = append(v.Groups[i].Nodes, nodeRow{
			Name: r.Node, Desired: cmp.Or(r.Desired.Short(), "-"), Applied: cmp.Or(r.Applied.Short(), "-"), Since: formatSince(p.At, r.Since), Agent: cmp.Or(r.Agent, "-"),
		})
	}
	slices.SortStableFunc(v.Groups, func(a, b stateGroup) int { return urgencyOf(b.State) - urgencyOf(a.State) })
	return v
}

// generic is what is said about a node, without its name: of many nodes the same is said.
func generic(text, node string) string { return strings.ReplaceAll(text, node, "NODE") }

// urgencyOf orders states: what needs a person first, what is done last.
func urgencyOf(state string) int { return slices.Index(nodestate.Names(), state) }

// countStates counts the nodes of each state that any has.
func countStates(rows []fleet.Row) []count {
	var list []count
	for _, s := range nodestate.All() {
		n := countFunc(rows, func(r fleet.Row) bool { return r.State == s })
		if n > 0 {
			list = append(list, count{string(s), n})
		}
	}
	if n := countFunc(rows, func(r fleet.Row) bool { return !r.IsReady() }); n > 0 {
		list = append(list, count{"not Ready", n})
	}
	return list
}

func countFunc(rows []fleet.Row, counts func(fleet.Row) bool) int {
	n := 0
	for _, r := range rows {
		if counts(r) {
			n++
		}
	}
	return n
}

// statesLine is the counts in words.
func statesLine(rows []fleet.Row) string {
	if len(rows) == 0 {
		return "no Windows nodes"
	}
	var parts []string
	for _, c := range countStates(rows) {
		parts = append(parts, fmt.Sprintf("%d %s", c.Nodes, c.State))
	}
	return strings.Join(parts, ", ")
}

// formatSince is how long ago something was, as kubectl writes ages.
func formatSince(now, t time.Time) string {
	if t.IsZero() || now.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(t), 0))
}

// rolloutView is a rollout: where it is, or what it will do.
type rolloutView struct {
	Title, Message, Fix string
	Left                []fleet.SamePlace
	Notes               []string
	Timeline            timeline
	// Turns are all rows of the timeline in words.
	Turns []turnRow
}

// turnRow is one row.
type turnRow struct{ When, Nodes, Impact, Result string }

func rolloutOf(p Page) *rolloutView {
	switch {
	case p.Forecast != nil && !p.Forecast.IsEmpty():
		return predicted(p)
	case p.Fleet != nil && len(p.Fleet.Rollout.Nodes) > 0:
		return observed(p)
	}
	return nil
}

// predicted is what the rollout of a change will do.
func predicted(p Page) *rolloutView {
	v := &rolloutView{Title: "Rollout of this change, as predicted", Message: p.Forecast.Summary(), Notes: p.Forecast.Notes}
	var spans []span
	for _, b := range p.Forecast.Batches() {
		text := string(b.Impact)
		if b.Canary {
			text += ", canary"
		}
		spans = append(spans, span{label: someOf(b.Nodes), begins: b.Begins, ends: b.Ends, class: impactClass(b.Impact), text: text})
		v.Turns = append(v.Turns, turnRow{When: fromNow(b.Begins), Nodes: strings.Join(b.Nodes, ", "), Impact: text})
	}
	v.Timeline = drawTimeline(spans, fromNow)
	v.Left = (fleet.Rollout{Nodes: p.Forecast.Left}).Left()
	return v
}

// turnKey is what turns have in common that one row shows.
type turnKey struct {
	begun, ended time.Time
	impact       bundle.Impact
	result       string
	canary       bool
}

// observed is where the rollout of a cluster is: the last turn of every node.
func observed(p Page) *rolloutView {
	r := p.Fleet.Rollout
	v := &rolloutView{Title: "Rollout", Message: r.Message, Left: r.Left()}
	if !strings.Contains(r.Message, r.Fix) {
		v.Fix = r.Fix
	}
	if r.Note != "" {
		v.Notes = append(v.Notes, r.Note)
	}
	rows := map[turnKey][]string{}
	var keys []turnKey
	for _, row := range p.Fleet.Nodes {
		turns := p.Fleet.Turns(row.Node)
		if len(turns) == 0 {
			continue
		}
		k := keyOf(turns[0])
		if rows[k] == nil {
			keys = append(keys, k)
		}
		rows[k] = append(rows[k], row.Node)
	}
	if len(keys) == 0 {
		return v
	}
	slices.SortStableFunc(keys, func(a, b turnKey) int { return a.begun.Compare(b.begun) })
	last := lastRollout(keys)
	start := last[0].begun
	var spans []span
	for _, k := range last {
		spans = append(spans, k.spanText(start, p.At, rows[k]))
	}
	for _, k := range keys {
		v.Turns = append(v.Turns, turnRow{When: formatTime(k.begun), Nodes: strings.Join(rows[k], ", "), Impact: string(k.impact), Result: k.outcomeText()})
	}
	v.Timeline = drawTimeline(spans, func(d time.Duration) string { return start.Add(d).UTC().Format("01-02 15:04") })
	return v
}

// rolloutGap is the time without a turn that tells one rollout from the one before.
const rolloutGap = 6 * time.Hour

// lastRollout returns the turns of the last rollout, of turns in the order of their beginnings.
func lastRollout(keys []turnKey) []turnKey {
	i := len(keys) - 1
	for i > 0 && keys[i].begun.Sub(keys[i-1].lastTurn()) <= rolloutGap {
		i--
	}
	return keys[i:]
}

func keyOf(t plan.Turn) turnKey {
	return turnKey{begun: t.Begun.UTC(), ended: t.Ended.UTC(), impact: t.Impact, result: string(t.Result), canary: t.Canary}
}

// lastTurn is the last that is known of the turn.
func (k turnKey) lastTurn() time.Time {
	if k.ended.IsZero() {
		return k.begun
	}
	return k.ended
}

func (k turnKey) isOpen() bool { return k.ended.IsZero() && !k.isOver() }

// isOver reports whether nothing follows, whether its end is known or not: of a turn that restarts nothing, none is recorded.
func (k turnKey) isOver() bool {
	return k.result == string(published.StateApplied) || k.result == string(published.StateRolledBack)
}

// outcomeText is how the turn ended.
func (k turnKey) outcomeText() string {
	if k.ended.IsZero() {
		return cmp.Or(k.result, "under way")
	}
	return strings.TrimSpace(k.result + " after " + k.ended.Sub(k.begun).Round(time.Second).String())
}

func (k turnKey) spanText(start, now time.Time, names []string) span {
	s := span{label: someOf(names), begins: k.begun.Sub(start), ends: k.ended.Sub(start), class: impactClass(k.impact), text: string(k.impact)}
	if k.isOpen() {
		s.ends = max(now.Sub(start), s.begins)
	}
	if k.ended.IsZero() {
		s.ends = max(s.ends, s.begins)
		s.text += ", " + k.outcomeText()
	}
	if k.canary {
		s.text += ", canary"
	}
	return s
}
