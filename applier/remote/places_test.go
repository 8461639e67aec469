package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testPlaces are two places, with four hosts that may be asked and eight that may be open.
func testPlaces() *Places {
	return NewPlaces(PlaceLimits{Working: 2, Asking: 4, Open: 8, Idle: 30 * time.Second, Turn: 10 * time.Minute})
}

// hostRun is a host that is worked on until its context ends.
type hostRun struct {
	turn *Turn
	ctx  context.Context //nolint:containedctx // that of the work on the host
	// err is why it ended; it is closed then.
	err chan error
}

// run begins a turn in the background; do is what happens on the host.
func run(p *Places, key string, do func(context.Context) error) *hostRun {
	ctx, turn := p.WithTurn(context.Background(), key, nil)
	h := &hostRun{turn: turn, ctx: ctx, err: make(chan error, 1)}
	go func() {
		defer turn.End()
		err := beginTurn(ctx)
		if err == nil {
			err = do(ctx)
		}
		h.err <- err
	}()
	return h
}

// stays silent, until it is ended.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// silentAtWork answers once, and stays silent while it has a place.
func silentAtWork(ctx context.Context) error {
	noteProgress(ctx)
	if err := TakePlace(ctx); err != nil {
		return err
	}
	return silent(ctx)
}

// good answers, and works for a minute.
func good(ctx context.Context) error {
	noteProgress(ctx)
	if err := TakePlace(ctx); err != nil {
		return err
	}
	for range 6 {
		time.Sleep(10 * time.Second)
		noteProgress(ctx)
	}
	return ctx.Err()
}

func (h *hostRun) ended() (err error, ended bool) { //nolint:revive // both are the answer
	select {
	case err := <-h.err:
		h.err <- err
		return err, true
	default:
		return nil, false
	}
}

func TestHostsThatNeverAnswerTakeNoPlaceAndEndForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces()
		var all []*hostRun
		for i := range 40 {
			all = append(all, run(p, fmt.Sprint("silent-", i), silent))
		}
		synctest.Wait()
		if len(p.open) != 4 || p.working != 0 {
			t.Errorf("%d open, %d with a place", len(p.open), p.working)
		}
		one := run(p, "good", good)
		// Before it are 40 in the order in which they came, four every 30 s.
		time.Sleep(7 * time.Minute)
		synctest.Wait()
		if err, ended := one.ended(); !ended || err != nil {
			t.Errorf("ended: %t, %v", ended, err)
		}
		// What came before is late now: another one waits for no more than one of them.
		for i := range 40 {
			all = append(all, run(p, fmt.Sprint("silent-", i), silent))
		}
		synctest.Wait()
		another := run(p, "another", good)
		time.Sleep(91 * time.Second)
		synctest.Wait()
		if err, ended := another.ended(); !ended || err != nil {
			t.Errorf("behind late ones, ended: %t, %v", ended, err)
		}
		if err, ended := all[0].ended(); !ended || !errors.Is(err, ErrNoProgress) {
			t.Errorf("a silent one, ended: %t, %v", ended, err)
		}
		endAll(all)
	})
}

// endAll ends what still runs.
func endAll(all []*hostRun) {
	for _, h := range all {
		h.turn.cancel(nil)
	}
	synctest.Wait()
}

func TestAHostThatStopsAtWorkGoesOnWithoutItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces()
		stopped := []*hostRun{run(p, "a", silentAtWork), run(p, "b", silentAtWork)}
		synctest.Wait()
		one := run(p, "good", good)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if p.working != 2 || one.turn.stage != stageQueued {
			t.Errorf("%d with a place", p.working)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if p.working != 1 || one.turn.stage != stageWorking {
			t.Errorf("%d with a place", p.working)
		}
		// With progress it has a place again, at once: nothing on a host waits for others.
		noteProgress(stopped[0].ctx)
		noteProgress(stopped[1].ctx)
		if p.working != 3 {
			t.Errorf("%d with a place", p.working)
		}
		next := run(p, "next", good)
		synctest.Wait()
		if next.turn.stage != stageQueued {
			t.Errorf("the next one is at %d", next.turn.stage)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		for _, h := range stopped {
			if _, ended := h.ended(); ended {
				t.Error("a host that may be at work was ended although there is room")
			}
		}
		endAll(append(stopped, one, next))
	})
}

func TestHostsThatStopAtWorkMayNotKeepAllOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces()
		var stopped []*hostRun
		for i := range 8 {
			stopped = append(stopped, run(p, fmt.Sprint("stops-", i), silentAtWork))
			time.Sleep(40 * time.Second)
		}
		synctest.Wait()
		one := run(p, "good", good)
		synctest.Wait()
		if _, ended := stopped[0].ended(); ended || one.turn.stage != stageNew {
			t.Errorf("a host that stopped at work is ended at once: %t, the other one is at %d", ended, one.turn.stage)
		}
		// The first one has been silent for longest. After ten minutes it is ended for another one.
		time.Sleep(7 * time.Minute)
		synctest.Wait()
		if err, ended := one.ended(); !ended || err != nil {
			t.Errorf("ended: %t, %v", ended, err)
		}
		// Late ones are ended after 30 s.
		endAll(stopped)
		for i := range 8 {
			stopped = append(stopped, run(p, fmt.Sprint("stops-", i), silentAtWork))
		}
		time.Sleep(5 * time.Minute)
		another := run(p, "another", good)
		time.Sleep(91 * time.Second)
		synctest.Wait()
		if err, ended := another.ended(); !ended || err != nil {
			t.Errorf("behind late ones, ended: %t, %v", ended, err)
		}
		endAll(stopped)
	})
}

// A host that makes progress all the time has its place for ten minutes, and goes on.
func TestAPlaceIsHeldForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces()
		busy := func(ctx context.Context) error {
			if err := TakePlace(ctx); err != nil {
				return err
			}
			for ctx.Err() == nil {
				noteProgress(ctx)
				time.Sleep(10 * time.Second)
			}
			return ctx.Err()
		}
		all := []*hostRun{run(p, "a", busy), run(p, "b", busy)}
		synctest.Wait()
		one := run(p, "good", good)
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if one.turn.stage != stageQueued {
			t.Errorf("the third one is at %d", one.turn.stage)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if err, ended := one.ended(); !ended || err != nil {
			t.Errorf("ended: %t, %v", ended, err)
		}
		endAll(all)
		time.Sleep(10 * time.Second)
	})
}

// A caller who does not wait is told when to come again, and finds its place then.
func TestACallerIsToldWhenThereIsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces()
		var mu sync.Mutex
		told := map[string]int{}
		try := func(key string) (*Turn, error) {
			ctx, turn := p.WithTurn(t.Context(), key, func() {
				mu.Lock()
				defer mu.Unlock()
				told[key]++
			})
			return turn, beginTurn(ctx)
		}
		var turns []*Turn
		for i := range 4 {
			turn, err := try(fmt.Sprint("first-", i))
			if err != nil {
				t.Fatal(err)
			}
			turn.noteProgress()
			turns = append(turns, turn)
		}
		for range 3 { // other requests for the same host change nothing
			for _, key := range []string{"x", "y"} {
				turn, err := try(key)
				if !errors.Is(err, ErrNoPlace) {
					t.Errorf("%s: %v", key, err)
				}
				turn.End()
			}
		}
		turns[0].End()
		synctest.Wait()
		if told["x"] != 1 || told["y"] != 0 {
			t.Errorf("told: %v", told)
		}
		if turn, err := try("z"); !errors.Is(err, ErrNoPlace) {
			t.Errorf("the place of x is taken: %v", err)
		} else {
			turn.End()
		}
		turn, err := try("x")
		if err != nil {
			t.Error(err)
		}
		turn.noteProgress()
		turn.End()
		synctest.Wait()
		// y wants nothing any more: z is next.
		_, gone := p.WithTurn(t.Context(), "y", func() {})
		gone.End()
		synctest.Wait()
		if told["z"] != 1 || len(p.reserved) != 1 || p.asking != 4 {
			t.Errorf("told: %v, reserved: %v, %d asking", told, p.reserved, p.asking)
		}
		_, gone = p.WithTurn(t.Context(), "z", func() {})
		gone.End()
		for _, turn := range turns {
			turn.End()
		}
		if p.asking != 0 || len(p.open) != 0 || len(p.reserved) != 0 || len(p.waiting) != 0 || len(p.late) != 0 {
			t.Errorf("left: %d asking, %d open, reserved %v, %d waiting, late %v", p.asking, len(p.open), p.reserved, len(p.waiting), p.late)
		}
	})
}

// A turn inside of another one, such as that of a host that gets executables, has both places.
func TestATurnInATurnHasBothPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, inner := testPlaces(), testPlaces()
		var all []*hostRun
		for i := range 2 {
			all = append(all, run(p, fmt.Sprint(i), func(ctx context.Context) error {
				ctx, turn := inner.WithTurn(ctx, "", nil)
				defer turn.End()
				if err := beginTurn(ctx); err != nil {
					return err
				}
				return silentAtWork(ctx)
			}))
		}
		synctest.Wait()
		if p.working != 2 || inner.working != 2 || !inner.IsBusy() {
			t.Errorf("%d and %d with places", p.working, inner.working)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if p.working != 0 || inner.working != 0 || inner.IsBusy() {
			t.Errorf("after 30 s without progress %d and %d have places", p.working, inner.working)
		}
		endAll(all)
	})
}

// TestThousandsOfSilentHosts cost a bounded number of connections.
func TestThousandsOfSilentHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(DefaultLimits().PlacesFor(16))
		most := 0
		again := make(chan string, 10_000)
		var all []*hostRun
		try := func(key string) {
			ctx, turn := p.WithTurn(context.Background(), key, func() { again <- key })
			if err := beginTurn(ctx); err != nil {
				turn.End()
				return
			}
			h := &hostRun{turn: turn, ctx: ctx}
			all = append(all, h)
			go func() {
				defer turn.End()
				noteProgress(ctx) // it answers, and is silent from then on
				if TakePlace(ctx) == nil {
					<-ctx.Done()
				}
			}()
		}
		for i := range 2000 {
			try(fmt.Sprint(i))
		}
		for range 60 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			p.mu.Lock()
			most = max(most, len(p.open)+len(p.reserved))
			p.mu.Unlock()
			for len(again) > 0 {
				try(<-again)
			}
		}
		if most > 256 || len(all) < 300 {
			t.Errorf("%d were open at once, %d in all", most, len(all))
		}
		endAll(all)
	})
}
