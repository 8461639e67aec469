package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/testenv/controlplane"
)

// nodeState is the state in a Node's annotations.
type nodeState struct {
	name             string
	desired, applies bundle.Digest
	// payload is the one that the operator has noted to be on the host.
	payload bundle.Digest
	at      time.Time
}

// applied reports whether the node has its published bundle.
func (s nodeState) applied() bool { return s.desired != "" && s.desired == s.applies }

// reports are the Nodes as a watch shows them.
type reports struct {
	t       testing.TB
	n       int
	changed chan struct{}
	mu      sync.Mutex
	nodes   map[string]nodeState
	// answer gets each Node.
	answer func(*metav1.PartialObjectMetadata)
}

func watchReports(ctx context.Context, t testing.TB, n int, answer func(*metav1.PartialObjectMetadata)) *reports {
	t.Helper()
	c, err := metadata.NewForConfig(cluster.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &reports{t: t, n: n, changed: make(chan struct{}, 1), nodes: map[string]nodeState{}, answer: answer}
	only := func(o *metav1.ListOptions) { o.LabelSelector = corev1.LabelOSStable + "=windows" }
	nodes := c.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				only(&o)
				return nodes.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				only(&o)
				return nodes.Watch(ctx, o)
			},
		},
		ObjectType: &metav1.PartialObjectMetadata{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: r.see, UpdateFunc: func(_, now any) { r.see(now) }},
	})
	go informer.RunWithContext(ctx)
	return r
}

func (r *reports) see(o any) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	s := nodeState{name: m.Name, payload: bundle.Digest(m.Annotations[published.PayloadAnnotation]), at: time.Now()}
	if d, err := published.DecodeDesired(m.Annotations[published.DesiredAnnotation]); err == nil {
		s.desired = d.Bundle
	}
	if report, err := published.DecodeReport(m.Annotations[published.ReportAnnotation]); err == nil && report.State == published.StateApplied && report.Desired == report.Applied {
		s.applies = report.Applied
	}
	r.mu.Lock()
	if before, ok := r.nodes[m.Name]; ok && before.desired == s.desired && before.applies == s.applies && before.payload == s.payload {
		s.at = before.at
	}
	r.nodes[m.Name] = s
	r.mu.Unlock()
	r.answer(m)
	select {
	case r.changed <- struct{}{}:
	default: // the next look is soon
	}
}

func (r *reports) bundles() map[string]bundle.Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bundle.Digest{}
	for name, s := range r.nodes {
		all[name] = s.desired
	}
	return all
}

// await returns when the last of all nodes became so.
func (r *reports) await(what string, is func(nodeState) bool) time.Time {
	r.t.Helper()
	return r.awaitSome(r.n, what, is)
}

// awaitSome is await for some nodes at least.
func (r *reports) awaitSome(n int, what string, is func(nodeState) bool) time.Time {
	r.t.Helper()
	limit := time.After(controlplane.Patience + time.Duration(r.n)*4*time.Second)
	for {
		r.mu.Lock()
		var last time.Time
		count := 0
		for _, s := range r.nodes {
			if is(s) {
				count++
				if s.at.After(last) {
					last = s.at
				}
			}
		}
		r.mu.Unlock()
		if count >= n {
			return last
		}
		select {
		case <-r.changed:
			time.Sleep(20 * time.Millisecond) // a thousand changes are not looked at one by one
		case <-limit:
			r.t.Fatalf("waiting for %s: %d of %d", what, count, n)
		}
	}
}
