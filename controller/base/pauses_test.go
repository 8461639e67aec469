package base

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// pausing are pauses with a clock of their own.
type pausing struct {
	*Pauses
	clock *clocktesting.FakeClock
	// tried are the tries of each thing.
	tried map[string]int
}

func newPausing() *pausing {
	p := &pausing{Pauses: NewPauses(logr.Discard()), clock: clocktesting.NewFakeClock(time.Unix(0, 0)), tried: map[string]int{}}
	p.now = p.clock.Now
	return p
}

// try tries each thing once, with what becomes of it.
func (p *pausing) try(ctx context.Context, all map[string]error) {
	p.BeginPass()
	for what, err := range all {
		_ = p.Try(ctx, what, func(context.Context) error {
			p.tried[what]++
			return err
		})
	}
}

// TestEachHasItsOwnPauses: ten Nodes, of which some fail for different reasons, while something happens every second.
func TestEachHasItsOwnPauses(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	all := map[string]error{
		"forbidden": apierrors.NewForbidden(nodes, "forbidden", errors.New("refused")),
		"busy":      fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("busy", 20)),
		"away":      errors.New("connection refused"),
		"changed":   apierrors.NewConflict(nodes, "changed", errors.New("changed")),
	}
	for i := range 6 {
		all[fmt.Sprintf("healthy-%d", i)] = nil
	}
	p := newPausing()
	for range 61 {
		p.try(t.Context(), all)
		p.clock.Step(time.Second)
	}
	for what, err := range all {
		want := map[string]int{"busy": 4, "changed": 61}[what]
		switch got := p.tried[what]; {
		case err == nil && got != 61:
			t.Errorf("%s was tried %d times of 61", what, got)
		case want != 0 && got != want: // a pause that is asked for, and a second after a conflict
			t.Errorf("%s was tried %d times, want %d", what, got, want)
		case err != nil && want == 0 && (got < 10 || got > 15): // 5 ms to 30 s, which double
			t.Errorf("%s was tried %d times", what, got)
		}
	}
	// One that fails for the first time is retried soon, whatever the others do.
	all["healthy-0"] = errors.New("a moment")
	p.try(t.Context(), all)
	if p.NextTry() != firstRetry {
		t.Errorf("again in %s", p.NextTry())
	}
	all["healthy-0"] = nil
	p.clock.Step(firstRetry)
	p.try(t.Context(), all)
	if p.tried["healthy-0"] != 63 {
		t.Errorf("it was tried %d times", p.tried["healthy-0"])
	}
}

// TestWhatWaitsIsStillSaid: what has failed and is not tried now is no success.
func TestWhatWaitsIsStillSaid(t *testing.T) {
	p := newPausing()
	refused, failing := errors.New("refused"), true
	try := func() error {
		p.BeginPass()
		return p.Try(t.Context(), "status", func(context.Context) error {
			p.tried["status"]++
			if failing {
				return refused
			}
			return nil
		})
	}
	for range 3 {
		if err := try(); !errors.Is(err, refused) || p.tried["status"] != 1 {
			t.Errorf("%v after %d tries", err, p.tried["status"])
		}
	}
	failing = false
	p.clock.Step(LastRetry)
	if err := try(); err != nil || p.NextTry() != 0 {
		t.Errorf("%v; again in %s", err, p.NextTry())
	}
	// What is not wanted any longer does not wake anything.
	failing = true
	_ = try()
	if p.BeginPass(); p.NextTry() != 0 {
		t.Errorf("again in %s", p.NextTry())
	}
	p.clock.Step(2 * forgetFailure)
	if p.BeginPass(); len(p.failed) != 0 {
		t.Error("it is not forgotten")
	}
}

// TestAfterAnOutageNothingWaits, and one that has failed often begins with short pauses again.
func TestAfterAnOutageNothingWaits(t *testing.T) {
	p := newPausing()
	failing := map[string]error{"Node win-1": errors.New("no answer"), "status": errors.New("no answer")}
	for range 20 {
		p.try(t.Context(), failing)
		p.clock.Step(LastRetry)
	}
	p.try(t.Context(), failing)
	if p.NextTry() != LastRetry {
		t.Fatalf("again in %s", p.NextTry())
	}
	retries, woken := NewRetries(p.clock), 0
	Manager{retries: retries}.AddPauses(logr.Discard(), func() { t.Error("it is woken for nothing") })
	retries.onRecovery(func() {
		if p.makeAllDue() {
			woken++
		}
	})
	retries.noteUnanswered()
	p.clock.Step(outage)
	retries.noteAnswered()
	before := p.tried["status"]
	p.try(t.Context(), failing)
	if woken != 1 || p.tried["status"] != before+1 || p.NextTry() != firstRetry {
		t.Errorf("woken %d times, tried %d times more, again in %s", woken, p.tried["status"]-before, p.NextTry())
	}
}

// TestAPauseOfOneNodeOccupiesNothing: client-go waits in the request for what an API server asks for; here the caller has other things to do.
func TestAPauseOfOneNodeOccupiesNothing(t *testing.T) {
	busy := transportFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3"}}, Body: http.NoBody}, nil
	})
	ask := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://localhost", nil)
		if err != nil {
			return err
		}
		resp, err := NewRetries(clock.RealClock{}).WrapTransport(busy).RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	p := newPausing()
	if err := p.Try(t.Context(), "Node win-1", ask); !apierrors.IsTooManyRequests(err) || p.NextTry() != 3*time.Second {
		t.Errorf("%v; again in %s", err, p.NextTry())
	}
	if err := ask(t.Context()); err != nil {
		t.Errorf("a request of others: %v", err)
	}
}
