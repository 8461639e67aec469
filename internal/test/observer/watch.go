package observer

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// kind is a watched kind: listed gets a list as a whole, see each event after it.
type kind struct {
	from   *cache.ListWatch
	listed func(runtime.Object)
	see    func(watch.Event)
}

// Watch shows all Windows Nodes, Events and pods of the default namespace to the observer, until the context ends.
// Those of now are seen when it returns. A watch that ends goes on where it was; where that cannot be, a list as a
// whole is seen: its objects are those of one moment.
func (o *Observer) Watch(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	windows := func(l *metav1.ListOptions) { l.LabelSelector = corev1.LabelOSStable + "=windows" }
	all := func(*metav1.ListOptions) {}
	core, events := c.CoreV1().RESTClient(), c.EventsV1().RESTClient()
	for _, k := range []kind{
		{cache.NewFilteredListWatchFromClient(core, "nodes", "", windows), o.seeNodes, o.seeNodeEvent},
		{cache.NewFilteredListWatchFromClient(core, "pods", metav1.NamespaceDefault, all), o.seePods, o.seePodEvent},
		{cache.NewFilteredListWatchFromClient(events, "events", "", all), o.searchEvents, o.searchEvent},
	} {
		version, err := k.list(ctx)
		if err != nil {
			return err
		}
		go k.follow(ctx, version)
	}
	return nil
}

func (k kind) list(ctx context.Context) (version string, err error) {
	list, err := k.from.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	at, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	k.listed(list)
	return at.GetResourceVersion(), nil
}

// follow watches from a version, and lists where that is not possible any more.
func (k kind) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		if w, err := watchtools.NewRetryWatcherWithContext(ctx, version, k.from); err == nil {
			for e := range w.ResultChan() {
				k.see(e)
			}
		} else {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		version, _ = k.list(ctx) // empty while the API server is away: no watch begins there, and it is listed again
	}
}

func (o *Observer) seeNodes(list runtime.Object) {
	if l, ok := list.(*corev1.NodeList); ok {
		o.replaceNodes(l.Items, Revision(l.ResourceVersion))
	}
}

func (o *Observer) seeNodeEvent(e watch.Event) {
	n, ok := e.Object.(*corev1.Node)
	switch {
	case ok && e.Type == watch.Deleted:
		o.deleteNode(*n)
	case ok:
		o.seeNode(*n)
	}
}

func (o *Observer) seePods(list runtime.Object) {
	if l, ok := list.(*corev1.PodList); ok {
		for _, p := range l.Items {
			o.seePod(p)
		}
	}
}

func (o *Observer) seePodEvent(e watch.Event) {
	if p, ok := e.Object.(*corev1.Pod); ok {
		o.seePod(*p)
	}
}

func (o *Observer) searchEvents(list runtime.Object) {
	if l, ok := list.(*eventsv1.EventList); ok {
		for _, x := range l.Items {
			o.SearchText("an Event "+x.Reason, x.Note)
		}
	}
}

func (o *Observer) searchEvent(e watch.Event) {
	if x, ok := e.Object.(*eventsv1.Event); ok {
		o.SearchText("an Event "+x.Reason, x.Note)
	}
}
