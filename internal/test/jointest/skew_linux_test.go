package jointest_test

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"wmco/bundle/published"
)

// skewObserver sees every state of the Windows Nodes and asks the API server for its version. It asks no operator.
//
//	Nodes ---list, watch--> kubelet of each: not newer than the API server, at most three minor versions older, exchanged only in a turn
//	/version --each exchange--'
type skewObserver struct {
	world   *world
	version func() (uint, error)

	mu sync.Mutex
	// server is the minor version of the API server; it only rises.
	server uint
	// kubelets are the versions that each node has had.
	kubelets map[string][]string
	events   int
	faults   []string
}

// oldestKubelet is how many minor versions a kubelet may be older than the API server (kubernetes.io/releases/version-skew-policy).
const oldestKubelet = 3

// observeSkew observes until the end of the test.
func (w *world) observeSkew() *skewObserver {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(w.admin)
	must(w.t, err)
	o := &skewObserver{world: w, version: func() (uint, error) { return servedMinor(clients.Discovery()) }, kubelets: map[string][]string{}}
	o.exchanged()
	windows := func(l *metav1.ListOptions) { l.LabelSelector = corev1.LabelOSStable + "=windows" }
	see := func(x any) {
		if n, ok := x.(*corev1.Node); ok {
			o.see(n)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(clients.CoreV1().RESTClient(), "nodes", "", windows), ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, x any) { see(x) }},
	})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); informer.Run(stop) }()
	w.t.Cleanup(func() { close(stop); <-ended })
	return o
}

// servedMinor is the minor version that an API server behaves as.
func servedMinor(d discovery.DiscoveryInterface) (uint, error) {
	v, err := d.ServerVersion()
	if err != nil {
		return 0, err
	}
	minor := v.Minor
	if v.EmulationMinor != "" {
		minor = v.EmulationMinor
	}
	var n uint
	_, err = fmt.Sscan(minor, &n)
	return n, err
}

// exchanged asks the API server for its version, and checks all nodes.
func (o *skewObserver) exchanged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ask()
	for node, kubelets := range o.kubelets {
		o.judge(node, kubelets[len(kubelets)-1])
	}
}

func (o *skewObserver) ask() {
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if o.server, err = o.version(); err == nil {
			return
		}
	}
	o.fault("asking the API server for its version: %v", err)
}

// see is called with every state of a Node, in their order.
func (o *skewObserver) see(n *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	has, had := n.Status.NodeInfo.KubeletVersion, o.kubelets[n.Name]
	if has == "" { // a Node that was made before its kubelet has reported
		return
	}
	if len(had) == 0 || had[len(had)-1] != has {
		if len(had) > 0 && (!n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != published.CordonedForRollout) {
			o.fault("%s has kubelet %s after %s, and is not cordoned for it: %v", n.Name, has, had[len(had)-1], n.Annotations)
		}
		o.kubelets[n.Name] = append(had, has)
	}
	o.judge(n.Name, has)
}

// judge holds a kubelet to the API server. One that seems too new can be one that came right after an exchange.
func (o *skewObserver) judge(node, kubelet string) {
	v, err := version.ParseSemantic(kubelet)
	if err != nil {
		o.fault("%s: %v", node, err)
		return
	}
	if v.Minor() > o.server {
		o.ask()
	}
	if v.Minor() > o.server || v.Minor()+oldestKubelet < o.server {
		o.fault("%s has kubelet %s, the API server 1.%d", node, kubelet, o.server)
	}
}

func (o *skewObserver) fault(format string, args ...any) {
	const most = 20
	if len(o.faults) < most {
		o.faults = append(o.faults, fmt.Sprintf(format, args...))
	}
}
