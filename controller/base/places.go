package base

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/applier/remote"
)

// reaching is a reconciler that reaches hosts over SSH. Each reconcile is a turn (remote.Places): a silent host
// does not delay the others. One that finds no place ends at once, and is requested again when there is one: so
// no worker waits, and what it reads is not old.
type reaching struct {
	reconcile.Reconciler
	places *remote.Places
	// queue is that of the controller, once it has started.
	queue *Queue
}

// newReaching returns the reconciler, and a source that it needs.
func newReaching(r reconcile.Reconciler, limits remote.PlaceLimits) (reaching, source.Source) {
	q := new(Queue)
	started := source.Func(func(_ context.Context, of Queue) error {
		*q = of
		return nil
	})
	return reaching{r, remote.NewPlaces(limits), q}, started
}

// Reconcile implements reconcile.Reconciler.
func (r reaching) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, turn := r.places.WithTurn(ctx, req.String(), func() { (*r.queue).Add(req) })
	defer turn.End()
	return r.Reconciler.Reconcile(ctx, req)
}

// NewHostController is NewController for reconcilers that reach hosts: there are workers for all hosts that may be
// open, and for parallel requests that need no host. As many hosts are worked on at the same time; one without progress
// does not count.
func (m Manager) NewHostController(name string, r reconcile.Reconciler, parallel int) (controller.Controller, error) {
	limits := remote.DefaultLimits().PlacesFor(parallel)
	reaches, queue := newReaching(r, limits)
	c, err := m.NewController(name, reaches, limits.Open+parallel)
	if err != nil {
		return nil, err
	}
	return c, c.Watch(queue)
}
