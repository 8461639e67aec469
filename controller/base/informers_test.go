package base

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// TestListsAndWatchesAreTriedAgainWhileTheAPIServerIsNotWell: what an informer has to answer itself it gets at once.
func TestListsAndWatchesAreTriedAgainWhileTheAPIServerIsNotWell(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for _, c := range []struct {
		err   error
		asked int
	}{
		{apierrors.NewInternalError(io.ErrUnexpectedEOF), 3}, {apierrors.NewServiceUnavailable(""), 3}, {apierrors.NewTooManyRequests("", 1), 3}, {io.ErrUnexpectedEOF, 3},
		{apierrors.NewTimeoutError("", 1), 3}, {apierrors.NewServerTimeout(nodes, "list", 1), 3},
		{apierrors.NewResourceExpired(""), 1}, {apierrors.NewForbidden(nodes, "", nil), 1}, {apierrors.NewNotFound(nodes, ""), 1}, {apierrors.NewUnauthorized(""), 1}, {context.Canceled, 1},
	} {
		lists, watches := 0, 0
		fail := func(asked *int) error {
			if *asked++; *asked < 3 {
				return c.err
			}
			return nil
		}
		from := &toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, fail(&lists) },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewEmptyWatch(), fail(&watches)
			},
		}
		p := patientListWatch{from, wait.Backoff{Duration: time.Microsecond, Steps: 9}, func() {}}
		_, listed := p.List(metav1.ListOptions{})
		_, watched := p.Watch(metav1.ListOptions{})
		if lists != c.asked || watches != c.asked || (c.asked > 1) != (listed == nil && watched == nil) {
			t.Errorf("%v: listed %d times (%v), watched %d times (%v), want %d", c.err, lists, listed, watches, watched, c.asked)
		}
	}
	pauses := relistPauses()
	for range 20 {
		if pause := pauses.Step(); pause > 6*time.Second || pause <= 0 {
			t.Errorf("a pause of %s", pause)
		}
	}
	var logged []string
	logger := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	tries := 0
	_, err := untilWell(klog.NewContext(t.Context(), logger), wait.Backoff{Duration: time.Microsecond, Steps: 9}, func() (int, error) {
		if tries++; tries < 5 {
			return 0, errors.New("no route to the API server")
		}
		return 0, nil
	})
	if err != nil || len(logged) != 1 || !strings.Contains(logged[0], "no route to the API server") {
		t.Errorf("%v, logged %q", err, logged)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	failure := errors.New("no route")
	if _, err := untilWell(ctx, relistPauses(), func() (int, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Errorf("an informer that ends gets %v", err)
	}
}

// TestAStoppedWatchIsReadToItsEnd shows that the goroutine of watch.Filter ends with its watch, although an event was on its way: the bubble does not end
// before.
func TestAStoppedWatchIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		events := watch.NewFake()
		w := drainedWatch{watch.Filter(events, func(e watch.Event) (watch.Event, bool) { return e, true })}
		events.Add(&corev1.Node{})
		synctest.Wait()
		w.Stop()
	})
}
