package remote

import (
	"slices"
	"time"
)

// hasRoom reports whether another turn may begin.
func (p *Places) hasRoom() bool {
	return p.asking < p.limits.Asking && len(p.open)+len(p.reserved) < p.limits.Open
}

// givePlaces gives free places to those who wait, and ends turns without progress for the rest of them.
func (p *Places) givePlaces() {
	for p.working < p.limits.Working && len(p.queued) > 0 {
		p.queued = giveFirst(p.queued)
	}
	for len(p.waiting) > 0 && p.hasRoom() {
		p.waiting = giveFirst(p.waiting)
	}
	ending := 0
	for t := range p.open {
		if t.ended {
			ending++
		}
	}
	for ; ending < len(p.waiting); ending++ {
		t := p.dispensableTurn(p.asking >= p.limits.Asking)
		if t == nil {
			return
		}
		t.ended, t.lost = true, true
		t.cancel(ErrNoProgress)
	}
}

func giveFirst(list []waiter) []waiter {
	list[0].give()
	return slices.Delete(list, 0, 1)
}

// dispensableTurn returns the turn that is ended first for another host, among all or among those that ask; nil if
// there is none. A host without an answer goes before one that has answered.
func (p *Places) dispensableTurn(asking bool) *Turn { //nolint:revive // which limit is in the way
	var first *Turn
	for t := range p.open {
		if t.ended || asking && t.stage != stageAsking || !p.mayEndTurn(t) {
			continue
		}
		if first == nil || t.goesBefore(first) {
			first = t
		}
	}
	return first
}

// goesBefore reports whether a turn is ended rather than the other one.
func (t *Turn) goesBefore(other *Turn) bool {
	if t.answered != other.answered {
		return other.answered
	}
	return t.at.Before(other.at)
}

// mayEndTurn reports whether a turn may be ended for another host. One that queues waits for others itself.
func (p *Places) mayEndTurn(t *Turn) bool {
	silent := time.Since(t.at)
	switch {
	case t.stage == stageQueued || silent < p.limits.Idle:
		return false
	case !t.answered || t.late:
		return true
	}
	return silent >= p.limits.Turn
}

// IsBusy reports whether another turn that begins now would have to queue. A host that makes no progress does not
// count.
func (p *Places) IsBusy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for t := range p.open {
		if t.stage != stageIdle && (t.stage != stageAsking || time.Since(t.at) < p.limits.Idle) {
			n++
		}
	}
	return n >= p.limits.Working
}
