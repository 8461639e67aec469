package agent

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waiting is a clock that notes how long each wait is.
type waiting struct {
	*attempts
	waited time.Duration
}

func (w *waiting) After(d time.Duration) <-chan time.Time {
	w.waited += d
	w.boot += d
	fired := make(chan time.Time, 1)
	fired <- time.Time{}
	return fired
}

// TestAgentsThatLoseTheAPIServerAtOnceComeBackOneAfterAnother: each waits before what client-go would do at once.
func TestAgentsThatLoseTheAPIServerAtOnceComeBackOneAfterAnother(t *testing.T) {
	clock := &waiting{attempts: &attempts{}}
	p := pace{connection: Connection{Clock: clock, Spread: func(most time.Duration) time.Duration { return most / 3 }}}
	watch := func() error { return p.waitToWatch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(300))}) }
	list := func() error { return p.waitToList(t.Context()) }
	for _, step := range []struct {
		name  string
		after time.Duration
		ask   func() error
		waits bool
	}{
		{"the first list", 0, list, false},
		{"the first watch", 0, watch, false},
		{"the watch was lost", time.Minute, watch, true},
		{"it lasted its time", 300 * time.Second, watch, false},
		{"it was lost", time.Second, watch, true},
		{"the API server is away, and a list is next", time.Second, list, true},
		{"it is away still", time.Second, list, true},
		{"the watch that follows a list", 0, watch, false},
	} {
		clock.boot += step.after
		before := clock.waited
		if err := step.ask(); err != nil {
			t.Fatal(err)
		}
		if waited := clock.waited - before; waited != map[bool]time.Duration{true: spreadOver / 3}[step.waits] {
			t.Errorf("%s: waited %s", step.name, waited)
		}
	}
}
