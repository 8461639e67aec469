package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// PlaceLimits say how many hosts a process works on at the same time, and how long a host may keep others waiting.
type PlaceLimits struct {
	// Working is the number of places: hosts that get something, or are changed.
	Working int
	// Asking is how many hosts are connected to and asked for a first answer, without a place. Open is how many hosts
	// there are in all, with those that lost their place and go on.
	Asking, Open int
	// Idle is how long a host keeps its place without progress: an answer, an event, another mebibyte.
	Idle time.Duration
	// Turn is how long it keeps its place at most.
	Turn time.Duration
}

// More hosts are connected to at once than are worked on, so that one that does not answer delays no other. Each open
// host costs a connection.
const (
	askingFactor = 4
	minAsking    = 64
	openFactor   = 4
)

// PlacesFor returns the limits for so many places.
func (l Limits) PlacesFor(working int) PlaceLimits {
	working = max(working, 1)
	asking := max(askingFactor*working, minAsking)
	return PlaceLimits{Working: working, Asking: asking, Open: openFactor * asking, Idle: l.Idle, Turn: l.Turn}
}

// Places share the attention of a process between hosts, so that those that say nothing cost the others nothing. Agents
// take part by the context of their calls (Places.WithTurn):
//
//	waiting --Asking, Open--> asking --first command that does work--> queued --Working--> working --Idle, Turn--> idle
//	                            |                                                             ^------progress-------'|
//	                            '--ended after Idle, if others wait                               ended, if others wait
//
// An idle host goes on, and takes a place again with its next progress: there may be more than Working then, and no
// host of the queue begins. It is ended for another one only if it was late before, or has been idle for Turn: work
// on a host may take minutes in silence. Hosts wait and queue in the order in which they came, late ones behind
// the others: those whose last turn had no answer, or lost its place.
type Places struct {
	limits PlaceLimits

	mu sync.Mutex
	// open are the turns that have begun; asking, with queued ones, and working are how many of them there are.
	// Reserved are places among the asking for callers who were told to come again, by key.
	open            map[*Turn]bool
	asking, working int
	reserved        map[string]bool
	waiting, queued []waiter
	// late are the keys of hosts that go behind others.
	late map[string]bool
}

// waiter is one entry of a queue: the turn that waits, and the function to call when it gets its place.
type waiter struct {
	key  string
	late bool
	turn *Turn
	give func()
}

// NewPlaces returns places that are all free.
func NewPlaces(l PlaceLimits) *Places {
	return &Places{limits: l, open: map[*Turn]bool{}, reserved: map[string]bool{}, late: map[string]bool{}}
}

// stage is where a turn is.
type stage int

const (
	stageNew stage = iota
	stageAsking
	stageQueued
	stageWorking
	stageIdle
	stageEnded
)

// Turn is the work of one caller on one host. It begins with the first call of an Agent.
type Turn struct {
	places *Places
	key    string
	parent *Turn
	again  func()
	cancel context.CancelCauseFunc

	// What follows is guarded by the mutex of the places.
	stage stage
	late  bool
	// asked reports whether an Agent was called; answered whether there was progress, at is when there was last; lost
	// whether the place was lost.
	asked, answered, lost bool
	at                    time.Time
	// spent reports whether the turn has had its place for the longest time: it goes on without one.
	spent bool
	// ended reports whether it was ended for another host, and its caller has yet to see that.
	ended       bool
	idle, limit *time.Timer
}

// ErrNoPlace means that as many hosts are open as may be. The caller is told when to come again.
var ErrNoPlace = errors.New("as many hosts are worked on as may be; this one follows")

// ErrNoProgress is why a turn was ended for another host.
var ErrNoProgress = errors.New("the host made no progress, and others waited")

type turnKey struct{}

// WithTurn returns a context for all calls on one host. The caller ends the turn. A turn that the context has already
// takes part, too. Key names the host for the next time; empty remembers nothing.
//
// If again is nil, the first call of an Agent waits until the turn can begin. Otherwise the call returns ErrNoPlace,
// and again is called when a turn of the same key can begin: there is a place for it until then.
func (p *Places) WithTurn(ctx context.Context, key string, again func()) (context.Context, *Turn) {
	t := &Turn{places: p, key: key, again: again}
	t.parent, _ = ctx.Value(turnKey{}).(*Turn)
	ctx, t.cancel = context.WithCancelCause(ctx)
	return context.WithValue(ctx, turnKey{}, t), t
}

// turnOf returns the turn of a context; nil if it has none.
func turnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}

// beginTurn begins the turn of a context.
func beginTurn(ctx context.Context) error {
	for t := turnOf(ctx); t != nil; t = t.parent {
		if err := t.awaitPlace(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) awaitPlace(ctx context.Context) error {
	p := t.places
	p.mu.Lock()
	t.asked = true
	if t.stage != stageNew {
		p.mu.Unlock()
		return context.Cause(ctx)
	}
	t.late = p.late[t.key]
	waits := slices.ContainsFunc(p.waiting, func(w waiter) bool { return w.key != "" && w.key == t.key })
	switch {
	case p.reserved[t.key]:
		delete(p.reserved, t.key)
		t.startLimits()
	case !waits && p.hasRoom() && len(p.waiting) == 0:
		p.asking++
		t.startLimits()
	case t.again == nil:
		return p.waitInList(ctx, t, &p.waiting, func() {
			p.asking++
			t.startLimits()
		})
	case !waits:
		p.waiting = insertWaiter(p.waiting, waiter{t.key, t.late, t, func() {
			p.asking++
			p.reserved[t.key] = true
			go t.again() // not under the lock
		}})
		p.givePlaces()
		fallthrough
	default:
		p.mu.Unlock()
		return ErrNoPlace
	}
	p.mu.Unlock()
	return nil
}

// insertWaiter adds a waiter: late ones are behind the others.
func insertWaiter(list []waiter, w waiter) []waiter {
	at := len(list)
	if i := slices.IndexFunc(list, func(other waiter) bool { return other.late }); !w.late && i >= 0 {
		at = i
	}
	return slices.Insert(list, at, w)
}

// waitInList unlocks the places, and waits in a list.
func (p *Places) waitInList(ctx context.Context, t *Turn, list *[]waiter, give func()) error {
	ready := make(chan struct{})
	*list = insertWaiter(*list, waiter{t.key, t.late, t, func() {
		give()
		close(ready)
	}})
	p.givePlaces()
	p.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = slices.DeleteFunc(*list, func(w waiter) bool { return w.turn == t })
	return context.Cause(ctx)
}

// startLimits begins the limits of a turn that is among the asking.
func (t *Turn) startLimits() {
	t.stage, t.at = stageAsking, time.Now()
	t.places.open[t] = true
	t.idle = time.AfterFunc(t.places.limits.Idle, t.endIdle)
}

// TakePlace waits for a place for the turn of the context: for a command that does work on the host, or for work
// for it here.
func TakePlace(ctx context.Context) error {
	for t := turnOf(ctx); t != nil; t = t.parent {
		if err := t.takePlace(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) takePlace(ctx context.Context) error {
	p := t.places
	p.mu.Lock()
	if t.stage != stageAsking {
		p.mu.Unlock()
		return context.Cause(ctx)
	}
	t.stage = stageQueued
	return p.waitInList(ctx, t, &p.queued, func() {
		p.asking--
		p.working++
		t.stage, t.at = stageWorking, time.Now()
		t.idle.Reset(p.limits.Idle)
		t.limit = time.AfterFunc(p.limits.Turn, t.endOverdue)
	})
}

// noteProgress notes that a host has got further.
func noteProgress(ctx context.Context) {
	for t := turnOf(ctx); t != nil; t = t.parent {
		t.noteProgress()
	}
}

func (t *Turn) noteProgress() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open[t] {
		return
	}
	t.answered, t.at = true, time.Now()
	t.idle.Reset(p.limits.Idle)
	if t.stage == stageIdle && !t.spent {
		t.stage = stageWorking
		p.working++
	}
}

// endIdle is called when there was no progress for Idle.
func (t *Turn) endIdle() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open[t] {
		return
	}
	if left := p.limits.Idle - time.Since(t.at); left > 0 {
		t.idle.Reset(left) // there was some while this call waited for the lock
		return
	}
	if t.stage == stageWorking {
		p.working--
		t.stage, t.lost = stageIdle, true
	}
	p.givePlaces()
	// Later, another host may wait.
	t.idle.Reset(p.limits.Idle)
}

// endOverdue is called when the turn has had its place for the longest time.
func (t *Turn) endOverdue() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	t.spent = true
	if t.stage == stageWorking {
		p.working--
		t.stage = stageIdle
	}
	p.givePlaces()
}

// End ends the turn.
func (t *Turn) End() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open[t]:
		p.closeTurn(t)
	case !t.asked && t.key != "":
		// The host has joined, or is gone: it wants no place.
		delete(p.late, t.key)
		p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.key == t.key })
		if p.reserved[t.key] {
			delete(p.reserved, t.key)
			p.asking--
		}
	}
	t.stage = stageEnded
	t.cancel(nil)
	p.givePlaces()
}

func (p *Places) closeTurn(t *Turn) {
	delete(p.open, t)
	t.idle.Stop()
	if t.limit != nil {
		t.limit.Stop()
	}
	switch t.stage {
	case stageAsking, stageQueued:
		p.asking--
	case stageWorking:
		p.working--
	case stageNew, stageIdle, stageEnded:
	}
	delete(p.late, t.key)
	if t.key != "" && (!t.answered || t.lost) {
		p.late[t.key] = true
	}
}
