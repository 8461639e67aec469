package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"wmco/bundle"
	"wmco/bundle/published"
)

// requestTimeout is the limit of one request. The watch has its own.
const requestTimeout = 30 * time.Second

// leaseNamespace holds the Lease of each Node, which its kubelet renews
// (kubernetes.io/docs/concepts/architecture/nodes, Node heartbeats).
const leaseNamespace = "kube-node-lease"

// userPrefix begins the user name of a kubelet (kubernetes.io/docs/reference/access-authn-authz/node).
const userPrefix = "system:node:"

// APIServer reaches the cluster as the node itself. It reads its kubeconfig when it is first needed, so that the agent
// can start before the kubelet has its certificate.
type APIServer struct {
	connection Connection

	// mu guards what follows.
	mu sync.Mutex
	// link is the connection by the files that were read last, nil before they could be read.
	link *link
	// readAgain is the time since boot when the files are read again.
	readAgain time.Duration
}

// NewAPIServer reaches the cluster by a kubeconfig. No file is read yet.
func NewAPIServer(c Connection) *APIServer { return &APIServer{connection: c} }

// Watch implements Cluster. It watches the metadata of this Node only. If the API server is unreachable, it retries with
// a growing delay.
func (s *APIServer) Watch(ctx context.Context, changed func(Node)) {
	if !s.awaitFiles(ctx) {
		return
	}
	notice, pace := s.watchLogger(), pace{connection: s.connection}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := pace.waitToList(ctx); err != nil {
				return nil, err
			}
			l, err := s.currentLink()
			if err != nil {
				return nil, err
			}
			list, err := l.ownNode().List(ctx, l.limitToNode(o))
			notice(ctx, l.explainError(err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := pace.waitToWatch(ctx, o); err != nil {
				return nil, err
			}
			l, err := s.currentLink()
			if err != nil {
				return nil, err
			}
			w, err := l.ownNode().Watch(ctx, l.limitToNode(o))
			notice(ctx, l.explainError(err))
			return w, err
		},
	}
	tell := func(o any) {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			changed(nodeOf(m.ObjectMeta))
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }},
	})
	controller.RunWithContext(ctx)
}

// watchLogger returns a function that logs that the Node cannot be followed, and that it can be again. Every attempt in
// between would fill the log.
func (s *APIServer) watchLogger() func(context.Context, error) {
	failing := false
	return func(ctx context.Context, err error) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.connection.Log.Warn("watching Node failed, retrying", "error", err)
		case err == nil && failing:
			s.connection.Log.Info("the Node is followed again")
		}
		failing = err != nil
	}
}

// Part implements Cluster.
func (s *APIServer) Part(ctx context.Context, namespace, name string) ([]byte, error) {
	l, err := s.currentLink()
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	err = l.doRequest(ctx, call{http.MethodGet, []string{coreAPI, "namespaces", namespace, "secrets", name}, "", nil}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: it does not exist", ErrNotPublished)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: this node may not read it", ErrNotPublished)
	}
	return secret.Data[published.SecretKey], err
}

// Report implements Cluster. NodeRestriction lets a node write its own annotations and conditions, in one request of
// the status.
func (s *APIServer) Report(ctx context.Context, status Status) error {
	l, err := s.currentLink()
	if err != nil {
		return err
	}
	condition := corev1.NodeCondition{
		Type: published.Condition, Status: corev1.ConditionFalse, Reason: string(status.State), Message: status.Message,
		LastHeartbeatTime: metav1.NewTime(status.Time), LastTransitionTime: metav1.NewTime(status.Changed),
	}
	if status.State == published.StateApplied {
		condition.Status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{published.ReportAnnotation: status.Text}},
		"status":   map[string]any{"conditions": []corev1.NodeCondition{condition}},
	})
	if err != nil {
		return err
	}
	return l.doRequest(ctx, call{http.MethodPatch, []string{coreAPI, "nodes", l.node, "status"}, string(types.StrategicMergePatchType), patch}, nil)
}

// Heartbeat implements Cluster.
func (s *APIServer) Heartbeat(ctx context.Context) (time.Time, error) {
	l, err := s.currentLink()
	if err != nil {
		return time.Time{}, err
	}
	var node corev1.Node
	if err := l.doRequest(ctx, call{http.MethodGet, []string{coreAPI, "nodes", l.node}, "", nil}, &node); err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			last = c.LastHeartbeatTime.Time
		}
	}
	if last.IsZero() {
		return last, nil
	}
	var lease coordinationv1.Lease
	err = l.doRequest(ctx, call{
		http.MethodGet, []string{"apis/coordination.k8s.io/v1/namespaces", leaseNamespace, "leases", l.node}, "", nil,
	}, &lease)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return time.Time{}, err
	case lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(last):
		last = lease.Spec.RenewTime.Time
	}
	return last, nil
}

// OwnKubeconfig implements Cluster.
func (s *APIServer) OwnKubeconfig() ([]byte, error) { return s.connection.KubeconfigWithFiles() }

// ErrNoNode means that the Node of this host does not exist.
var ErrNoNode = errors.New("the Node of this host does not exist")

// OwnNode returns the Node of this host as the API server has it now.
func (s *APIServer) OwnNode(ctx context.Context) (Node, error) {
	l, err := s.currentLink()
	if err != nil {
		return Node{}, err
	}
	var node corev1.Node
	err = l.doRequest(ctx, call{http.MethodGet, []string{coreAPI, "nodes", l.node}, "", nil}, &node)
	if apierrors.IsNotFound(err) {
		return Node{}, fmt.Errorf("%w: %w", ErrNoNode, err)
	}
	return nodeOf(node.ObjectMeta), err
}

// nodeOf returns what the agent reads of its Node.
func nodeOf(m metav1.ObjectMeta) Node {
	_, paused := m.Annotations[published.PausedAnnotation]
	return Node{
		UID: string(m.UID), Desired: m.Annotations[published.DesiredAnnotation], Report: m.Annotations[published.ReportAnnotation],
		Retry: m.Annotations[published.RetryAnnotation], Paused: paused,
		Fetch: bundle.Digest(m.Annotations[published.FetchAnnotation]),
	}
}

// Event implements Cluster.
func (s *APIServer) Event(ctx context.Context, e Event) error {
	l, err := s.currentLink()
	if err != nil {
		return err
	}
	kind, message := corev1.EventTypeNormal, published.Shorten(e.Message)
	if e.Warning {
		kind, message = corev1.EventTypeWarning, s.connection.Pages.AddPage(message, e.Reason, published.MaxMessage)
	}
	at := metav1.NewTime(e.Time)
	event := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: l.node + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: l.node, UID: types.UID(l.node)},
		Type:           kind, Reason: e.Reason, Message: message, FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: bundle.AgentProgram, Host: l.node},
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return l.doRequest(ctx, call{http.MethodPost, []string{coreAPI, "namespaces", metav1.NamespaceDefault, "events"}, "application/json", body}, nil)
}
