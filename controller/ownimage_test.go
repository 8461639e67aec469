package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestTheImageOfTheOperator is that of its own container, by digest. Where it will be known, the inputs wait for it; what is known is not asked for again.
func TestTheImageOfTheOperator(t *testing.T) {
	image, loaded := "quay.example.com/org/wmco@sha256:"+strings.Repeat("ab", 32), "sha256:"+strings.Repeat("ab", 32)
	pod := func(container, id string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "a"}}
		p.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: container}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ImageID: "other"}, {Name: container, ImageID: id}}
		return p
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", nil)
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		failed error
		want   string
		waits  bool
	}{
		"its container":               {pod: pod("manager", image), want: image},
		"another container":           {pod: pod("other", image)},
		"an image without a registry": {pod: pod("manager", loaded)},
		"an image by tag":             {pod: pod("manager", "quay.example.com/org/wmco:v1")},
		"a Pod that cannot be found":  {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}}},
		"a Pod that it may not read":  {pod: pod("manager", image), failed: forbidden},
		"nothing is reported yet":     {pod: pod("manager", ""), waits: true},
		"the API server is away":      {pod: pod("manager", image), failed: errors.New("connection refused"), waits: true},
	} {
		asked := 0
		o := ownImage{Namespace: "operator", Pod: "a", Log: logr.Discard(), Live: interceptor.NewClient(fake.NewFakeClient(c.pod), interceptor.Funcs{
			Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
				asked++
				if c.failed != nil {
					return c.failed
				}
				return to.Get(ctx, key, into, o...)
			},
		})}
		for range 2 {
			if got, err := o.ReadImage(t.Context()); got != c.want || (err != nil) != c.waits {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if again := asked == 2; again != c.waits {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
	if got, err := (&ownImage{}).ReadImage(t.Context()); got != "" || err != nil {
		t.Errorf("without a Pod: %q, %v", got, err)
	}
}
