package agent

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"wmco/bundle/published"
)

// requestTimeout is the limit of one request. The watch has its own.
const requestTimeout = 30 * time.Second

// leaseNamespace holds the Lease of each Node, which its kubelet renews
// (kubernetes.io/docs/concepts/architecture/nodes, Node heartbeats).
const leaseNamespace = "kube-node-lease"

// userPrefix begins the user name of a kubelet (kubernetes.io/docs/reference/access-authn-authz/node).
const userPrefix = "system:node:"

// APIServer reaches the cluster as the node itself.
type APIServer struct {
	node  string
	http  *http.Client
	base  *url.URL
	nodes metadata.Interface
}

// Connect reads a kubeconfig whose client certificate is the kubelet's. The certificate is read again when the kubelet renews
// it (client-go reloads the files of a transport). No request is made yet.
func Connect(kubeconfig string) (*APIServer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	node, err := nodeOf(config.TLSClientConfig)
	if err != nil {
		return nil, err
	}
	return NewAPIServer(config, node)
}

// NewAPIServer reaches the cluster of a configuration as a node.
func NewAPIServer(config *rest.Config, node string) (*APIServer, error) {
	config = rest.CopyConfig(config)
	// The API server's internal address is reached directly. The service has the cluster's proxy in its environment, for others.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.UserAgent = "wmco-node"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config) // with a path, if the API server is behind one
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	nodes, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	return &APIServer{node: node, http: client, base: base, nodes: nodes}, nil
}

// nodeOf returns the name of the node in the client certificate.
func nodeOf(c rest.TLSClientConfig) (string, error) {
	data := c.CertData
	if c.CertFile != "" {
		var err error
		if data, err = os.ReadFile(c.CertFile); err != nil {
			return "", fmt.Errorf("reading the client certificate of the kubelet: %w", err)
		}
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("reading the client certificate of the kubelet: %w", err)
		}
		name, ok := strings.CutPrefix(cert.Subject.CommonName, userPrefix)
		if !ok || name == "" {
			return "", fmt.Errorf("the client certificate is that of %q, which is no node", cert.Subject.CommonName)
		}
		return name, nil
	}
	return "", errors.New("the file of the kubelet's client certificate holds no certificate")
}

// Watch implements Cluster. It asks for the metadata of this Node only; whoever is away is asked again, with a growing pause.
func (s *APIServer) Watch(ctx context.Context, changed func(Node)) {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, s.node).String()
	nodes := s.nodes.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return nodes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return nodes.Watch(ctx, o)
		},
	}
	tell := func(o any) {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.Name == s.node {
			changed(Node{Desired: m.Annotations[published.DesiredAnnotation], Report: m.Annotations[published.ReportAnnotation]})
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }},
	})
	controller.RunWithContext(ctx)
}

// Part implements Cluster.
func (s *APIServer) Part(ctx context.Context, namespace, name string) ([]byte, error) {
	var secret corev1.Secret
	err := s.do(ctx, call{http.MethodGet, []string{coreAPI, "namespaces", namespace, "secrets", name}, "", nil}, &secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, ErrNotPublished
	}
	return secret.Data[published.SecretKey], err
}

// Report implements Cluster. NodeRestriction lets a node write its own annotations and conditions, in one request of the status.
func (s *APIServer) Report(ctx context.Context, status Status) error {
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
	return s.do(ctx, call{http.MethodPatch, []string{coreAPI, "nodes", s.node, "status"}, string(types.StrategicMergePatchType), patch}, nil)
}

// Heartbeat implements Cluster.
func (s *APIServer) Heartbeat(ctx context.Context) (time.Time, error) {
	var node corev1.Node
	if err := s.do(ctx, call{http.MethodGet, []string{coreAPI, "nodes", s.node}, "", nil}, &node); err != nil {
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
	err := s.do(ctx, call{http.MethodGet, []string{"apis/coordination.k8s.io/v1/namespaces", leaseNamespace, "leases", s.node}, "", nil}, &lease)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return time.Time{}, err
	case lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(last):
		last = lease.Spec.RenewTime.Time
	}
	return last, nil
}

// Event implements Cluster.
func (s *APIServer) Event(ctx context.Context, e Event) error {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(e.Time)
	event := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: s.node + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.node, UID: types.UID(s.node)},
		Type:           kind, Reason: e.Reason, Message: published.Shorten(e.Message), FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: "wmco-node", Host: s.node},
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.do(ctx, call{http.MethodPost, []string{coreAPI, "namespaces", metav1.NamespaceDefault, "events"}, "application/json", body}, nil)
}

// coreAPI is the path of the core API.
const coreAPI = "api/v1"

// call is a request.
type call struct {
	method      string
	path        []string
	contentType string
	body        []byte
}

// maxAnswer is larger than any object that is asked for, in bytes.
const maxAnswer = 4 << 20

// do makes one request, within its time. An answer that is not a success is a *apierrors.StatusError.
func (s *APIServer) do(ctx context.Context, c call, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, c.method, s.base.JoinPath(c.path...).String(), bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if c.contentType != "" {
		r.Header.Set("Content-Type", c.contentType)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer of the API server: %w", err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of the API server has more than %d bytes", maxAnswer)
	case answer.StatusCode/100 != 2:
		var status metav1.Status
		if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
			return &apierrors.StatusError{ErrStatus: status}
		}
		return apierrors.NewGenericServerResponse(answer.StatusCode, c.method, schema.GroupResource{}, "", "", 0, true)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the answer of the API server: %w", err)
	}
	return nil
}
