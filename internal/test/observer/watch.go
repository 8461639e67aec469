package observer

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// kind is what is watched.
type kind struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, string, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	// listed gets a list as a whole, see each event after it.
	listed func(list runtime.Object, version uint64)
	see    func(apiwatch.Event)
}

// Watch shows all Windows Nodes, Events and pods of the default namespace to the observer, until the context ends. Those of now are seen when it returns. A watch that ends goes on where it was; where that cannot be, or the
// API server is away, a list as a whole is seen: its objects are those of one moment.
func (o *Observer) Watch(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, pods, events := c.CoreV1().Nodes(), c.CoreV1().Pods(metav1.NamespaceDefault), c.EventsV1().Events(metav1.NamespaceAll)
	windows := func(l metav1.ListOptions) metav1.ListOptions {
		l.LabelSelector = corev1.LabelOSStable + "=windows"
		return l
	}
	for _, k := range []kind{
		{
			list: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, string, error) {
				list, err := nodes.List(ctx, windows(l))
				return list, list.GetResourceVersion(), err
			},
			watch: func(ctx context.Context, l metav1.ListOptions) (apiwatch.Interface, error) {
				return nodes.Watch(ctx, windows(l))
			},
			listed: func(list runtime.Object, version uint64) { o.replaceNodes(list.(*corev1.NodeList).Items, version) }, //nolint:forcetypeassert // as list returns it
			see:    o.seeNodeEvent,
		},
		{
			list: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, string, error) {
				list, err := pods.List(ctx, l)
				return list, list.GetResourceVersion(), err
			},
			watch: pods.Watch,
			listed: func(list runtime.Object, _ uint64) {
				for _, p := range list.(*corev1.PodList).Items { //nolint:forcetypeassert // as list returns it
					o.seePod(p)
				}
			},
			see: func(e apiwatch.Event) {
				if p, ok := e.Object.(*corev1.Pod); ok {
					o.seePod(*p)
				}
			},
		},
		{
			list: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, string, error) {
				list, err := events.List(ctx, l)
				return list, list.GetResourceVersion(), err
			},
			watch:  events.Watch,
			listed: func(runtime.Object, uint64) {}, // they were seen, or are seen again
			see: func(e apiwatch.Event) {
				if x, ok := e.Object.(*eventsv1.Event); ok {
					o.SearchText("an Event "+x.Reason, x.Note)
				}
			},
		},
	} {
		list, at, err := k.list(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		k.listed(list, Revision(at))
		go k.follow(ctx, at)
	}
	return nil
}

func (o *Observer) seeNodeEvent(e apiwatch.Event) {
	n, ok := e.Object.(*corev1.Node)
	switch {
	case ok && e.Type == apiwatch.Deleted:
		o.deleteNode(*n)
	case ok && e.Type != apiwatch.Bookmark:
		o.seeNode(*n)
	}
}

// follow watches from a version, and lists where it cannot. It ends with the context.
func (k kind) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		if version == "" {
			list, at, err := k.list(ctx, metav1.ListOptions{})
			if err != nil {
				pause(ctx, 200*time.Millisecond)
				continue
			}
			k.listed(list, Revision(at))
			version = at
		}
		w, err := k.watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			pause(ctx, 200*time.Millisecond)
			version = k.unlessGone(err, version)
			continue
		}
		version = k.read(w, version)
	}
}

// unlessGone returns the version where the watch can go on from it: the API server is only away.
func (k kind) unlessGone(err error, version string) string {
	if status, ok := err.(interface{ Status() metav1.Status }); ok && status.Status().Code != 0 {
		return ""
	}
	return version
}

// read sees the events of a watch until it ends, and returns where the next one begins; empty is with a list.
func (k kind) read(w apiwatch.Interface, version string) string {
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == apiwatch.Error {
			return ""
		}
		if m, ok := e.Object.(metav1.Object); ok {
			version = m.GetResourceVersion()
		}
		k.see(e)
	}
	return version
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
