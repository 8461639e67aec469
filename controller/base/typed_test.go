package base

import (
	"context"
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/gather/objects"
)

// TestTypedClient: an object with a Go type is read from the unstructured cache, whose objects stay as they are, and an unstructured Node from that
// of Nodes, which are kept as Go types. A kind that the cache does not have is asked for as it is.
func TestTypedClient(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, machinev1beta1.Install, configv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	errTyped, errNodeForm := errors.New("read with its type"), errors.New("a Node that is read unstructured")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"l": "v"}}}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m", Labels: map[string]string{"l": "v"}}}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			switch _, isNode := o.(*corev1.Node); {
			case isNode || o.GetObjectKind().GroupVersionKind() == MachineKind():
				return c.Get(ctx, key, o, options...)
			case o.GetObjectKind().GroupVersionKind() == NodeKind():
				return errNodeForm
			}
			return errTyped
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "NodeList" {
				return errNodeForm
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	c := TypedClient(cached, []objects.Want{{Group: machinev1beta1.GroupName, Version: "v1beta1", Kind: "Machine"}, {Version: "v1", Kind: "Node"}})
	var have machinev1beta1.Machine
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "m"}, &have); err != nil || have.Labels["l"] != "v" {
		t.Errorf("%+v, %v", have.ObjectMeta, err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "other"}, &have); !apierrors.IsNotFound(err) {
		t.Errorf("a Machine that does not exist: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "s"}, &corev1.Secret{}); !errors.Is(err, errTyped) {
		t.Errorf("a Secret, which the cache does not have: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "m"}, NewObject(MachineKind())); err != nil {
		t.Errorf("an unstructured Machine: %v", err)
	}
	u := NewObject(NodeKind())
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, u); err != nil || u.GetLabels()["l"] != "v" || u.GroupVersionKind() != NodeKind() {
		t.Errorf("an unstructured Node: %v, %v", u.Object, err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Errorf("a Node: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "none"}, u); !apierrors.IsNotFound(err) {
		t.Errorf("a Node that does not exist: %v", err)
	}
	list := NewList(NodeKind())
	if err := c.List(t.Context(), list, client.MatchingLabels{"l": "v"}); err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "n" || list.Items[0].GroupVersionKind() != NodeKind() {
		t.Errorf("unstructured Nodes: %v, %v", list.Items, err)
	}
	if err := c.List(t.Context(), NewList(MachineKind())); err != nil {
		t.Errorf("unstructured Machines: %v", err)
	}
}
