package base

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// NewInformer is for cache.Options.NewInformer of a cache whose callers do not wait when it is refused.
func NewInformer(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return (*RefusedWatches)(nil).NewInformer(from, o, resync, indexers)
}

// NewInformer is for cache.Options.NewInformer. After failures the library's informers wait for up to a minute
// (k8s.io/client-go, tools/cache/reflector.go): all that an operator learns would come so late after an outage. Its
// lists and watches are retried here instead.
func (r *RefusedWatches) NewInformer(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return r.newInformer(toolscache.ToListerWatcherWithContext(from), o, resync, indexers)
}

func (r *RefusedWatches) newInformer(from toolscache.ListerWatcherWithContext, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	kind := o.GetObjectKind().GroupVersionKind()
	if _, ok := o.(*corev1.Node); ok {
		kind = NodeKind() // Go types do not say it
	}
	refused := func() {
		if r != nil {
			r.noteRefusedKind(kind)
		}
	}
	return toolscache.NewSharedIndexInformer(patientListWatch{from, relistPauses(), refused}, o, resync, indexers)
}

// relistPauses are those between the tries: half a second at first, five at last.
func relistPauses() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: 5 * time.Second}
}

// patientListWatch tries lists and watches again that fail because the API server, or the way to it, is not well. All
// other errors are the informer's: an expired version, a missing permission, a kind that is not served.
type patientListWatch struct {
	toolscache.ListerWatcherWithContext
	pauses wait.Backoff
	// refused is called when the API server does not permit it, or does not serve the kind.
	refused func()
}

// ListWithContext implements cache.ListerWithContext.
func (p patientListWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := untilWell(ctx, p.pauses, func() (runtime.Object, error) {
		return p.ListerWatcherWithContext.ListWithContext(ctx, o)
	})
	p.noteRefusal(err)
	return list, err
}

// WatchWithContext implements cache.WatcherWithContext.
func (p patientListWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := untilWell(ctx, p.pauses, func() (watch.Interface, error) {
		return p.ListerWatcherWithContext.WatchWithContext(ctx, o)
	})
	p.noteRefusal(err)
	if err != nil {
		return nil, err
	}
	return drainedWatch{events}, nil
}

// drainedWatch is read to its end when it is stopped. Otherwise the goroutine of watch.Filter, with which
// controller-runtime watches metadata, stays forever where an event arrives at that moment.
type drainedWatch struct{ watch.Interface }

// Stop implements watch.Interface.
func (w drainedWatch) Stop() {
	w.Interface.Stop()
	go func() {
		for range w.ResultChan() {
		}
	}()
}

func (p patientListWatch) noteRefusal(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		p.refused()
	}
}

// List and Watch implement cache.ListerWatcher, for those who have no context.
func (p patientListWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), o)
}

func (p patientListWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), o)
}

// untilWell asks until the API server answers. The first of the failures in a row is logged.
func untilWell[T any](ctx context.Context, pauses wait.Backoff, ask func() (T, error)) (T, error) {
	for tries := 0; ; tries++ {
		answer, err := ask()
		if err == nil || !isUnwell(err) || ctx.Err() != nil {
			return answer, err
		}
		if tries == 0 {
			klog.FromContext(ctx).Info("a list or watch is tried until the API server answers", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(pauseAfter(err, pauses.Step())):
		}
	}
}

// pauseAfter returns the pause after an error: the one that the API server asks for, if that is longer than ours.
func pauseAfter(err error, ours time.Duration) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return max(ours, min(time.Duration(seconds)*time.Second, longestAway))
}

// isUnwell reports whether an error means that the API server, or the way to it, is not well.
func isUnwell(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled)
	}
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || status.Status().Code >= 500 //nolint:mnd // 5xx
}
