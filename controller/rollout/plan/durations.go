package plan

import (
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Durations are how long turns have taken in this cluster.
type Durations struct {
	byKind   map[measured][]time.Duration
	byImpact map[bundle.Impact][]time.Duration
}

type measured struct {
	group  Group
	impact bundle.Impact
}

// LearnDurations reads the turns that nodes have behind them. A turn that took longer than it may is not counted: its
// end was not noted.
func LearnDurations(f Fleet) Durations {
	d := Durations{byKind: map[measured][]time.Duration{}, byImpact: map[bundle.Impact][]time.Duration{}}
	for _, n := range f.Nodes {
		for _, t := range TurnHistory(n) {
			took := t.Ended.Sub(t.Begun)
			if t.Ended.IsZero() || took < 0 || took > 2*f.Policy.Timeout || t.Result != "" &&
				t.Result != published.StateApplied {
				continue
			}
			k := measured{n.Group, t.Impact}
			d.byKind[k], d.byImpact[t.Impact] = append(d.byKind[k], took), append(d.byImpact[t.Impact], took)
		}
	}
	return d
}

// TurnHistory returns the turns of a node with their ends as far as they are known, the latest first. The first one may
// be under way.
func TurnHistory(n Node) []Turn {
	m := evaluateNode(n, &Policy{})
	if m.turn.IsZero() {
		return n.State.Past
	}
	return append([]Turn{m.previousTurn()}, n.State.Past...)
}

// MedianOf returns the median of turns with an impact, of the group or else of all; false if there was none.
func (d Durations) MedianOf(g Group, i bundle.Impact) (time.Duration, bool) {
	list := d.byKind[measured{g, i}]
	if len(list) == 0 {
		list = d.byImpact[i]
	}
	if len(list) == 0 {
		return 0, false
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2], true
}
