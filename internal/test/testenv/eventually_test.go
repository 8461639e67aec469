package testenv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTheTimeOfLooks: a look that costs more is repeated less often, and sooner after a change.
func TestTheTimeOfLooks(t *testing.T) {
	for _, tt := range []struct {
		name string
		// cost is how long a look takes, change when something changes.
		cost, change time.Duration
		// want is when each look begins.
		want []time.Duration
	}{
		{"a look at a file", 0, 0, ms(0, 20, 40)},
		{"a list of the API server, without a change", 10 * time.Millisecond, 0, ms(0, 1010, 2020)},
		{"a list of the API server, and a change at once", 10 * time.Millisecond, 15 * time.Millisecond, ms(0, 210, 1220)},
		{"a list of the API server, and a later change", 10 * time.Millisecond, 300 * time.Millisecond, ms(0, 300, 1310)},
		{"a change during a look", 10 * time.Millisecond, 5 * time.Millisecond, ms(0, 210, 1220)},
		{"a busy API server, and a change", 100 * time.Millisecond, 150 * time.Millisecond, ms(0, 600, 2700)},
		{"a busy API server, without a change", 100 * time.Millisecond, 0, ms(0, 2100, 4200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, begin := newNotifier(), time.Now()
				if tt.change > 0 {
					time.AfterFunc(tt.change, n.notify)
				}
				var got []time.Duration
				if err := n.eventually(t.Context(), "three looks", func() bool {
					got = append(got, time.Since(begin))
					time.Sleep(tt.cost) // what a look costs
					return len(got) == len(tt.want)
				}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("looks (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func ms(list ...int) []time.Duration {
	var all []time.Duration
	for _, n := range list {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	return all
}

func TestTheEndOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotifier()
		err := n.eventually(t.Context(), "the Node", func() bool { return false })
		if want := "waiting for the Node: it has not come within 5m0s"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		ended := errors.New("the test ends")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(ended) })
		if err := n.eventually(ctx, "the Node", func() bool { return false }); !errors.Is(err, ended) {
			t.Errorf("got %v, want %v", err, ended)
		}
	})
}
