package testenv

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// changes are those of all control planes of this process.
var changes = newNotifier() //nolint:gochecknoglobals // as the control planes

// notifier reports that something has changed.
//
//	API server --watches of metadata, one for each kind--> notifier --next--> Eventually
type notifier struct {
	mu     sync.Mutex
	change chan struct{}
}

func newNotifier() *notifier { return &notifier{change: make(chan struct{})} }

// next returns a channel that is closed with the next change.
func (n *notifier) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.change
}

func (n *notifier) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.change)
	n.change = make(chan struct{})
}

// watchedKinds are those that tests wait for. Others, such as Leases that are renewed all the time, are seen by the
// looks in between.
var watchedKinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
	{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machines"},
	{Group: "windowsmachineconfig.openshift.io", Version: "v1alpha1", Resource: "windowsnodesstatuses"},
}

// watchAgent is the user agent of the watches in an audit log.
const watchAgent = "wmco-testenv-changes"

// followCluster notifies of the changes of a control plane until stop, which waits for the end of the watches.
func (n *notifier) followCluster(config *rest.Config) (stop func(), err error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = watchAgent, -1
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for _, kind := range watchedKinds {
		watching.Go(func() { n.followKind(ctx, c.Resource(kind)) })
	}
	return func() { cancel(); watching.Wait() }, nil
}

// The pauses before a kind is watched again: an API server ends watches, and not each one serves all kinds.
const (
	watchAgain = time.Second
	askAgain   = 10 * time.Second
)

func (n *notifier) followKind(ctx context.Context, c metadata.Getter) {
	for ctx.Err() == nil {
		again := askAgain
		if w, err := c.Watch(ctx, metav1.ListOptions{}); err == nil {
			again = watchAgain
			for range w.ResultChan() { // until the API server or stop ends it
				n.notify()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}
