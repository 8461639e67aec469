package rollout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/layers"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
)

// working is the publisher with the queue of controller-runtime, in a bubble with a clock of its own.
type working struct {
	inputs *debouncer
	queue  base.Queue
	// renders are the times of renderings since the start, publications their number with those that rendered nothing.
	renders      []time.Duration
	publications int
	// failing is how often the inputs cannot be read, rendering what happens during that.
	failing   int
	rendering func()
	// unjoined are the hosts that a rendering knows, tell reports how it goes; nil is nothing.
	unjoined func() []status.Host
	tell     func(context.Context, outcome) (time.Duration, error)
	// roll makes the steps; nil makes none, for no nodes.
	roll func(context.Context, steps.Rendered) (steps.Result, error)
}

func work(t *testing.T) *working {
	t.Helper()
	begin := time.Now()
	w := &working{inputs: &debouncer{now: time.Now, settle: settle}}
	p := &publisher{
		inputs: w.inputs, pauses: base.NewPauses(logr.Discard()), now: time.Now, log: logr.Discard(),
		render: func(context.Context) (rendering, error) {
			w.renders = append(w.renders, time.Since(begin))
			if w.rendering != nil {
				w.rendering()
			}
			if w.failing > 0 {
				w.failing--
				return rendering{}, errors.New("the API server gives no answer")
			}
			return rendering{at: time.Now(), unjoined: w.unjoined}, nil
		},
		publish: func(context.Context, []layers.Wanted) (layers.Changes, error) {
			w.publications++
			return layers.Changes{}, nil
		},
		roll: func(ctx context.Context, r steps.Rendered) (steps.Result, error) {
			if w.roll == nil {
				return steps.Result{}, nil
			}
			return w.roll(ctx, r)
		},
		report: func(ctx context.Context, o outcome) (time.Duration, error) {
			if w.tell == nil {
				return 0, nil
			}
			return w.tell(ctx, o)
		},
	}
	c, err := controller.NewUnmanaged("test", controller.Options{Reconciler: p, SkipNameValidation: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	if err := c.Watch(source.Func(func(_ context.Context, q base.Queue) error { w.queue = q; close(started); return nil })); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	<-started
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// pass lets time go by until all is done that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestChangesThatAreMadeTogetherAreRenderedOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes int
		apart   time.Duration
		want    int
	}{
		{"one change", 1, 0, 1},
		{"a hundred at once", 100, 0, 1},
		{"a hundred within five seconds", 100, 50 * time.Millisecond, 1},
		{"a hundred within ten seconds, the last before the limit", 100, 99 * time.Millisecond, 1},
		{"three far apart", 3, 2 * time.Second, 3},
		// Ten seconds, and the rest.
		{"a hundred within twenty seconds", 100, 200 * time.Millisecond, 2},
		{"without an end", 600, 100 * time.Millisecond, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := work(t)
				for range tt.changes {
					w.inputs.requestRendering(w.queue)
					time.Sleep(tt.apart)
				}
				pass(settle)
				if len(w.renders) != tt.want {
					t.Errorf("rendered at %v, want %d times", w.renders, tt.want)
				}
			})
		})
	}
}

func TestAChangeIsRenderedASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.inputs.requestRendering(w.queue)
		pass(time.Minute)
		if len(w.renders) != 1 || w.renders[0] != settle {
			t.Errorf("rendered at %v", w.renders)
		}
	})
}

func TestAChangeDuringARenderingIsRendered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.rendering = func() {
			w.rendering = nil
			w.inputs.requestRendering(w.queue)
		}
		w.inputs.requestRendering(w.queue)
		pass(time.Minute)
		if len(w.renders) != 2 {
			t.Errorf("rendered at %v", w.renders)
		}
	})
}

// TestWhatNodesReportIsNotRendered: a thousand agents report, each three times.
func TestWhatNodesReportIsNotRendered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.inputs.requestRendering(w.queue)
		pass(2 * time.Second)
		for range 3000 {
			w.inputs.requestComparison(w.queue)
			time.Sleep(10 * time.Millisecond)
		}
		pass(2 * time.Second)
		// Thirty seconds of reports, compared once a second.
		if len(w.renders) != 1 || w.publications < 2 || w.publications > 32 {
			t.Errorf("rendered at %v, compared %d times", w.renders, w.publications)
		}
	})
}

func TestEverythingIsRenderedAgainAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.inputs.requestRendering(w.queue)
		for range 59 { // reports do not put it off
			pass(time.Minute)
			w.inputs.requestComparison(w.queue)
		}
		pass(2 * time.Second)
		if len(w.renders) != 6 {
			t.Errorf("rendered at %v within an hour", w.renders)
		}
	})
}

func TestInputsThatCannotBeReadAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.failing = 3
		w.inputs.requestRendering(w.queue)
		pass(time.Minute)
		if len(w.renders) != 4 || w.publications != 1 {
			t.Errorf("rendered at %v, published %d times", w.renders, w.publications)
		}
	})
}
