package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/status"
	"wmco/internal/cli"
)

// watchPause is the time between two looks at the cluster with --watch, and watchPerNode what each node adds: a look
// transfers every Windows Node.
const (
	watchPause   = time.Second
	watchPerNode = 10 * time.Millisecond
)

// watched is what was seen last.
type watched struct {
	fleet.Fleet
	at time.Time
	// began is when a node was last seen with the bundle that it had before, by its name; none for a node that is
	// updated.
	began map[string]time.Time
	// first is when the first of them began; zero where all are updated.
	first time.Time
}

// move is what one node has done since the last look. A row without a state is a node that is gone.
type move struct {
	row, before fleet.Row
	// took is how long after the change the node is updated; 0 where it is not.
	took time.Duration
}

// follow prints what changes.
func (f *statusFlags) follow(ctx context.Context, a app, now fleet.Fleet, node string) error {
	w := newWatched(now, a.now())
	for {
		select {
		case <-ctx.Done():
			return cli.Exit(cli.ExitInterrupted)
		case <-time.After(watchPause + time.Duration(len(now.Nodes))*watchPerNode):
		}
		var err error
		if now, err = f.read(ctx, a, node); err != nil {
			return err
		}
		if err := f.printMoves(a, w, now); err != nil {
			return err
		}
	}
}

func newWatched(now fleet.Fleet, at time.Time) *watched {
	w := &watched{Fleet: now, at: at, began: map[string]time.Time{}}
	for _, r := range now.Nodes {
		w.begin(r, at)
	}
	return w
}

// begin notes that a node is not updated.
func (w *watched) begin(r fleet.Row, at time.Time) {
	if _, ok := w.began[r.Node]; ok || r.State == nodestate.Updated {
		return
	}
	w.began[r.Node] = at
	if w.first.IsZero() {
		w.first = at
	}
}

// look returns the nodes that have moved and the conditions that have changed.
func (w *watched) look(now fleet.Fleet, at time.Time) ([]move, []metav1.Condition) {
	var moves []move
	for _, r := range now.Nodes {
		before := w.last(r.Node)
		if before.State == r.State && before.Desired == r.Desired && before.Applied == r.Applied &&
			before.Reason == r.Reason && before.Message == r.Message && before.Ready == r.Ready {
			continue
		}
		if before.Desired != r.Desired {
			delete(w.began, r.Node)
			w.begin(fleet.Row{Node: r.Node}, w.at)
		}
		w.begin(r, w.at)
		m := move{row: r, before: before}
		if began, ok := w.began[r.Node]; ok && r.State == nodestate.Updated {
			m.took = at.Sub(began)
			delete(w.began, r.Node)
		}
		moves = append(moves, m)
	}
	for _, before := range w.Nodes {
		if !slices.ContainsFunc(now.Nodes, func(r fleet.Row) bool { return r.Node == before.Node }) {
			moves = append(moves, move{row: fleet.Row{Node: before.Node}, before: before})
			delete(w.began, before.Node)
		}
	}
	changed := slices.DeleteFunc(slices.Clone(now.Conditions), func(c metav1.Condition) bool {
		return slices.ContainsFunc(w.Conditions, func(b metav1.Condition) bool {
			return b.Type == c.Type && b.Status == c.Status && b.Reason == c.Reason && b.Message == c.Message
		})
	})
	w.Fleet, w.at = now, at
	return moves, changed
}

func (w *watched) last(node string) fleet.Row {
	if i := slices.IndexFunc(w.Nodes, func(r fleet.Row) bool { return r.Node == node }); i >= 0 {
		return w.Nodes[i]
	}
	return fleet.Row{}
}

// all reports whether all nodes have been updated to the wanted bundles, and how long after the first change.
func (w *watched) all(at time.Time) (time.Duration, bool) {
	if w.first.IsZero() || meta.IsStatusConditionFalse(w.Conditions, status.RolledOut) ||
		slices.ContainsFunc(w.Nodes, func(r fleet.Row) bool { return r.State != nodestate.Updated || !r.IsReady() }) {
		return 0, false
	}
	took := at.Sub(w.first)
	w.first = time.Time{}
	return took, true
}

func (f *statusFlags) printMoves(a app, w *watched, now fleet.Fleet) error {
	at, known, before, was := a.now(), w.Conditions, w.Rollout, w.Operator
	moves, conditions := w.look(now, at)
	fell := (was.Problem == "") != (now.Operator.Problem == "")
	turned := before.Message != now.Rollout.Message && len(now.Rollout.Nodes) > 0
	if f.format == cli.JSON {
		changed := fleet.Fleet{Conditions: conditions, Nodes: []fleet.Row{}}
		for _, m := range moves {
			if m.row.State != "" {
				changed.Nodes = append(changed.Nodes, m.row)
			}
		}
		if turned {
			changed.Rollout = now.Rollout
		}
		if fell {
			changed.Operator = now.Operator
		}
		if len(moves)+len(conditions) == 0 && !turned && !fell {
			return nil
		}
		return cli.WriteJSONLine(a.stdout, changed)
	}
	clock := at.UTC().Format(time.TimeOnly)
	switch {
	case fell && was.Problem == "":
		cli.Printf(a.stdout, "%s  %s\n", clock, operatorLine(now.Operator))
	case fell:
		cli.Printf(a.stdout, "%s  the operator works again\n", clock)
	}
	for _, c := range conditions {
		isNew := !slices.ContainsFunc(known, func(k metav1.Condition) bool { return k.Type == c.Type })
		if isNew && c.Status == metav1.ConditionTrue || c.Type == status.RolledOut {
			continue // the operator has begun to say it, and all is well; the rollout has its own line
		}
		cli.Printf(a.stdout, "%s  %s\n", clock, relativeTimes(at, problem(c)))
	}
	width := 0
	for _, r := range now.Nodes {
		width = max(width, len(r.Node))
	}
	for _, m := range moves {
		width = max(width, len(m.row.Node))
	}
	for _, m := range moves {
		if m.isVisible() {
			cli.Printf(a.stdout, "%s  %-*s  %s\n", clock, width, m.row.Node, m.text())
		}
	}
	if turned {
		cli.Printf(a.stdout, "%s  %s\n", clock, relativeTimes(at, "rollout: "+now.Rollout.Message+timeLeft(now.Rollout)))
	}
	if took, ok := w.all(at); ok {
		nodes := fmt.Sprintf("all %d nodes are", len(now.Nodes))
		if len(now.Nodes) == 1 {
			nodes = "the node is"
		}
		cli.Printf(a.stdout, "%s  %s updated, %s after the first change\n", clock, nodes, took.Round(time.Second))
	}
	return nil
}

// isVisible reports whether the line of the move differs from that of the one before.
func (m move) isVisible() bool {
	return m.row.State != m.before.State || m.row.Desired != m.before.Desired || reasonOf(m.row) != reasonOf(m.before)
}

// text is the move in one line, such as "Stale -> Updated  0123456789ab  after 5s".
func (m move) text() string {
	states, before := string(m.row.State), m.before.State
	if states == "" {
		return "gone"
	}
	if before == nodestate.Updated && m.row.State == before && m.row.Desired != m.before.Desired {
		before = nodestate.Stale // it was, between the two looks
	}
	if before != "" && before != m.row.State {
		states = string(before) + " -> " + states
	}
	parts := []string{fmt.Sprintf("%-22s", states), short(m.row.Desired)}
	if m.took > 0 {
		parts = append(parts, "after "+m.took.Round(time.Second).String())
	}
	parts = append(parts, reasonOf(m.row))
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}

// reasonOf returns why a node is stuck, and what to do; empty for temporary states, such as Joining.
func reasonOf(r fleet.Row) string {
	switch r.State {
	case nodestate.Updated:
		if r.IsReady() {
			return ""
		}
	case nodestate.Stale, nodestate.Updating, nodestate.Joining, nodestate.Removing:
		return ""
	case nodestate.Waiting, nodestate.Degraded, nodestate.NotReporting, nodestate.Refused:
	}
	text := r.Message
	if r.Impact != "" && r.Impact != bundle.ImpactNone {
		text = strings.TrimPrefix(text+"; impact "+string(r.Impact), "; ")
	}
	if r.Fix != "" {
		text += "; fix: " + r.Fix
	}
	return text
}
