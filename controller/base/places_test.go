package base

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/remote"
)

// hostsOf is a reconciler that reaches hosts by name: some of them say nothing.
type hostsOf struct {
	client *remote.Client
	mu     sync.Mutex
	done   []string
}

func (h *hostsOf) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := h.client.AgentFor(remote.Target{User: "a", Address: req.Name}).Confirm(ctx, "x")
	if errors.Is(err, remote.ErrNoPlace) {
		return reconcile.Result{}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, req.Name)
	return reconcile.Result{}, err
}

// someSilent is a transport to hosts of which only the good ones end a command.
type someSilent struct{ remote.Transport }

func (someSilent) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	if t.Address == "good" {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// No reconcile waits for a place: silent hosts keep no worker but those that are open, and a host that found no place is requested again
// when there is one.
func TestAReconcileThatFindsNoPlaceIsRequestedAgain(t *testing.T) {
	const asking = 4
	inner := &hostsOf{client: remote.NewClient(someSilent{}, remote.Program{Path: `C:\Windows\wmco\x.exe`}, remote.DefaultLimits())}
	r, started := newReaching(inner, remote.PlaceLimits{Working: 2, Asking: asking, Open: 8, Idle: 200 * time.Millisecond, Turn: time.Minute})
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if err := started.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint("silent-", i)}})
	}
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "good"}})
	// One worker more than hosts that may be asked: it finds no place for the others, and ends at once.
	for range asking + 1 {
		go func() {
			for {
				req, ended := q.Get()
				if ended {
					return
				}
				_, _ = r.Reconcile(t.Context(), req) // what it has done is noted
				q.Done(req)
			}
		}()
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		inner.mu.Lock()
		done := slices.Contains(inner.done, "good")
		inner.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the good host is not reached")
		}
	}
}
