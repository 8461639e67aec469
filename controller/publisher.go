package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/controller/executor"
	"wmco/controller/publish"
	"wmco/controller/windowsnode"
)

// retryStatus is how long after an error the status is written again.
const retryStatus = 10 * time.Second

// recheck is how long after a rendering everything is read and rendered again, although nothing was seen to change.
const recheck = 10 * time.Minute

// publisher publishes the bundles of all joined nodes, and gives the nodes their turns. What is rendered is kept until an input changes: what
// nodes report and what others do to published objects is compared with it.
type publisher struct {
	inputs *debouncer
	now    func() time.Time
	log    logr.Logger
	// render reads the inputs and renders all nodes, publish makes the cluster have the layers, roll makes the next steps of the
	// rollout, and tell says how it went where people look; it returns when it has to say more.
	render  func(context.Context) (rendering, error)
	publish func(context.Context, []publish.Wanted) (publish.Changes, error)
	roll    func(context.Context, executor.Rendered) (executor.Result, error)
	tell    func(context.Context, outcome) (time.Duration, error)
	// forget removes from Nodes the confirmations that nothing waits for.
	forget func(context.Context, []windowsnode.Node) error

	kept *rendering
	// urgent are the bundles of executor.Result.Urgent: their layers are wanted as those of the rendering are.
	urgent []publish.Wanted
}

// outcome is what a call of Reconcile has to say. Fresh reports whether the inputs were rendered by this call.
type outcome struct {
	rendering
	fresh bool
	// err is why not everything is published.
	err error
	// rollout is where the fleet is, rollErr why not every step was made.
	rollout executor.Result
	rollErr error
	// damaged are the names of Secrets of layers that were not what was published, and were replaced.
	damaged []string
}

// Reconcile publishes what differs. Inputs that are refused leave everything as it is published.
func (p *publisher) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := p.inputs.wait(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	fresh := p.inputs.take() || p.kept == nil || p.now().Sub(p.kept.at) >= recheck
	if fresh {
		p.kept = nil
		r, err := p.render(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		p.kept = &r
		if len(r.deleted.Used) > 0 {
			if err := p.forget(ctx, r.deleted.Used); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	changes, err := p.publish(ctx, slices.Concat(p.kept.layers(), p.urgent))
	result, rollErr := p.roll(ctx, p.kept.rolled(err, p.urgent))
	if len(result.Unready) > 0 && isPublishedForSome(err) { // what is urgent is made for what nodes have, so its layers are known only now
		urgent := slices.Concat(p.urgent, result.Unready)
		more, failed := p.publish(ctx, slices.Concat(p.kept.layers(), urgent))
		changes.Create, changes.Damaged, err = append(changes.Create, more.Create...), append(changes.Damaged, more.Damaged...), failed
		if isPublishedForSome(err) {
			result, rollErr = p.roll(ctx, p.kept.rolled(err, urgent))
		}
	}
	if rollErr == nil {
		p.urgent = result.Urgent
	}
	if !changes.IsZero() || result.Published > 0 {
		p.log.Info("published", "nodes", result.Published, "secrets", len(changes.Create), "deleted", len(changes.Delete), "checked", len(changes.Check))
	}
	rest, untold := p.tell(ctx, outcome{*p.kept, fresh, err, result, rollErr, changes.Damaged})
	if err := errors.Join(err, rollErr); err != nil {
		return reconcile.Result{}, err
	}
	if untold != nil { // which keeps nothing else waiting
		p.log.Error(untold, "saying how it goes")
		rest = retryStatus
	}
	again := max(recheck-p.now().Sub(p.kept.at), 0)
	for _, sooner := range []time.Duration{result.Again, rest} {
		if sooner > 0 {
			again = min(again, sooner)
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// isPublishedForSome reports whether nodes can read layers after a call of publish with this error, but for some.
func isPublishedForSome(err error) bool {
	return err == nil || errors.As(err, new(*publish.LayersError))
}
