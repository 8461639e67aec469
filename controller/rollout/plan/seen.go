package plan

import (
	"slices"
	"time"

	"wmco/bundle/published"
)

// longest is the longest time that is counted. Sums of a few stay in range.
const longest = 1e6 * time.Hour

func clampSeconds(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(longest/time.Second))) * time.Second
}

// seenBefore returns the durations of the Node's annotation.
func seenBefore(e Elapsed) Seen {
	return Seen{Permitted: clampSeconds(e.Permitted), Ended: clampSeconds(e.Ended), Taken: clampSeconds(e.Taken),
		Postponed: clampSeconds(e.Postponed), Booted: clampSeconds(e.Booted)}
}

func (s Seen) toElapsed() Elapsed {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	return Elapsed{Permitted: seconds(s.Permitted), Ended: seconds(s.Ended), Taken: seconds(s.Taken),
		Postponed: seconds(s.Postponed), Booted: seconds(s.Booted)}
}

// addTime adds the time since the last observation.
func (s Seen) addTime(d time.Duration) Seen {
	add := func(t time.Duration) time.Duration { return min(t+max(d, 0), longest) }
	return Seen{add(s.Permitted), add(s.Ended), add(s.Taken), add(s.Postponed), add(s.Ready), add(s.Reported),
		add(s.Booted)}
}

// followState is for a Node whose state was another one before: durations about something else now begin with the
// annotation's.
func (s Seen) followState(before, now State) Seen {
	base := seenBefore(now.Elapsed)
	since := func(before, now time.Time, seen, base time.Duration) time.Duration {
		switch {
		case now.IsZero():
			return 0
		case now.Equal(before):
			return max(seen, base)
		}
		return base
	}
	if before.Turn.Bundle != now.Turn.Bundle {
		before.Turn = Turn{}
	}
	s.Permitted = since(before.Turn.Permitted, now.Turn.Permitted, s.Permitted, base.Permitted)
	s.Ended = since(before.Turn.Ended, now.Turn.Ended, s.Ended, base.Ended)
	s.Taken = since(before.Slot.Taken, now.Slot.Taken, s.Taken, base.Taken)
	s.Postponed = since(before.Postponed, now.Postponed, s.Postponed, base.Postponed)
	if b := now.WindowsBoot.Begun; !b.IsZero() && !b.Equal(before.WindowsBoot.Begun) {
		s.Booted = base.Booted
	}
	return s
}

// Watch is what an operator has observed of one node until now. The zero value has observed nothing.
type Watch struct {
	state             State
	isReady, applied  bool
	ready, transition time.Time
	// knowsBoot is true once a boot on request was observed, or is known from before this process.
	knowsBoot bool
	seen      Seen
}

// ObserveNode observes a node some time after the last time, and returns for how long its state has lasted.
func (w *Watch) ObserveNode(n Node, passed time.Duration) Seen {
	now := Watch{state: n.State, isReady: n.Ready, applied: n.Report.State == published.StateApplied,
		ready: n.ReadySince, transition: n.Since}
	now.seen = w.seen.addTime(passed).followState(w.state, n.State)
	now.seen.Booted, now.knowsBoot = w.bootedFor(n, passed)
	if w.isReady != now.isReady || !w.ready.Equal(now.ready) {
		now.seen.Ready = 0
		if e := n.State.Elapsed; n.Ready && !e.ReadySince.IsZero() && e.ReadySince.Equal(n.ReadySince) {
			now.seen.Ready = clampSeconds(e.Ready)
		}
	}
	if w.applied != now.applied || !w.transition.Equal(now.transition) {
		now.seen.Reported = 0
	}
	*w = now
	return now.seen
}

// bootedFor returns Seen.Booted, and whether a boot is known. What this operator has signed decides: what else the Node
// has, which the node may write, counts only for a boot before this process began. So a node gains no boot by what it
// writes there.
func (w *Watch) bootedFor(n Node, passed time.Duration) (time.Duration, bool) {
	switch {
	case n.Boot.Permitted != "":
		return 0, true
	case w.knowsBoot:
		return w.seen.addTime(passed).Booted, true
	case n.State.WindowsBoot.IsZero():
		return longest, false
	}
	return clampSeconds(n.State.Elapsed.Booted), true
}

// ElapsedByStamps returns a fleet in which all has lasted since the times that stand on the Nodes, for those who have
// observed nothing: a command that shows where the nodes are. The clocks may have been wrong when those were written,
// so it decides nothing.
func ElapsedByStamps(f Fleet) Fleet {
	since := func(t time.Time) time.Duration { return min(max(f.Now.Sub(t), 0), longest) }
	f.Nodes = slices.Clone(f.Nodes)
	for i := range f.Nodes {
		n := &f.Nodes[i]
		n.Seen = Seen{
			Permitted: since(n.State.Turn.Permitted), Ended: since(n.State.Turn.Ended),
			Taken:     since(n.State.Slot.Taken),
			Postponed: since(n.State.Postponed.Add(-f.Policy.Timeout)), Ready: since(n.ReadySince),
			Reported: since(n.Since), Booted: longest,
		}
		if b := n.State.WindowsBoot; !b.IsZero() {
			n.Seen.Booted = since(b.Begun)
		}
	}
	return f
}

// notesOfTurn is how often in the time of a turn that takes so long its duration is written, so that an operator that
// is restarted again and again ends it some time.
const notesOfTurn = 4

// noteTimers are the times until what has elapsed is to be written, without another step. Once a limit has passed,
// there is nothing more to write.
func (m *nodeState) noteTimers() []time.Duration {
	written := seenBefore(m.State.Elapsed)
	var list []time.Duration
	note := func(counts bool, seen, written, limit time.Duration) {
		if counts && written < limit {
			list = append(list, written+limit/notesOfTurn-seen)
		}
	}
	note(m.hasTimeLimit(), m.Seen.Permitted, written.Permitted, m.policy.Timeout)
	note(m.isUnconfirmed() && !m.turn.Ended.IsZero(), m.Seen.Ended, written.Ended, m.policy.Settle+m.policy.Timeout)
	note(m.State.Slot.Held, m.Seen.Taken, written.Taken, m.policy.Timeout)
	note(!m.State.Postponed.IsZero(), m.Seen.Postponed, written.Postponed, m.policy.Timeout)
	note(!m.State.WindowsBoot.IsZero(), m.Seen.Booted, written.Booted, restAfterBoot)
	return list
}

func (m *nodeState) mustRecordTimers() bool {
	return slices.ContainsFunc(m.noteTimers(), func(left time.Duration) bool { return left <= 0 })
}

// elapsedAfterStep returns the durations for the annotation after a step. A step that changes nothing else, such as
// a drain that goes on, is no reason to write.
func (m *nodeState) elapsedAfterStep(s Step) Elapsed {
	still := s.Action == ActionDrain && s.Cordon == SwitchKeep && s.State.Slot == m.State.Slot
	if still && !m.mustRecordTimers() {
		return m.State.Elapsed
	}
	return m.elapsedFor(s.State)
}

// elapsedFor returns what has elapsed of a state that is about to be written.
func (m *nodeState) elapsedFor(s State) Elapsed {
	s.Elapsed = Elapsed{}
	e := m.Seen.followState(m.State, s).toElapsed()
	if s.WindowsBoot.IsZero() {
		e.Booted = 0
	}
	if s.Turn.Canary && s.Turn.Confirmed.IsZero() && !s.Turn.Ended.IsZero() && m.Ready {
		e.Ready, e.ReadySince = int64(m.Seen.Ready/time.Second), m.ReadySince.UTC().Truncate(time.Second)
	}
	return e
}
