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

// TestTypedClient: an object with a Go type is read from the unstructured cache, whose objects stay as they are. A kind that the cache does not have
// is asked for as it is.
func TestTypedClient(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, machinev1beta1.Install, configv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	errTyped := errors.New("read with its type")
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m", Labels: map[string]string{"l": "v"}}}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, ok := o.(runtime.Unstructured); !ok {
				return errTyped
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	c := TypedClient(cached, []objects.Want{{Group: machinev1beta1.GroupName, Version: "v1beta1", Kind: "Machine"}})
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
}
