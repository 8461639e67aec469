package drain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// endless is a client whose lists of pods end with their context.
type endless struct{ kubernetes.Interface }

func (e endless) CoreV1() typedcorev1.CoreV1Interface { return endlessCore{e.Interface.CoreV1()} }

type endlessCore struct{ typedcorev1.CoreV1Interface }

func (c endlessCore) Pods(namespace string) typedcorev1.PodInterface {
	return endlessPods{c.CoreV1Interface.Pods(namespace)}
}

type endlessPods struct{ typedcorev1.PodInterface }

func (endlessPods) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestARoundHasAnEnd: the pods of a node whose kubelet makes more all the time take no more of whoever drains it than the time of a round.
func TestARoundHasAnEnd(t *testing.T) {
	d := Drainer{Client: endless{fake.NewClientset()}}
	for name, round := range map[string]func(context.Context, string) (Left, error){"evicting": d.EvictOnce, "looking": d.RemainingPods} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*roundLimit)
			defer cancel()
			if _, err := round(ctx, "win-a"); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				t.Errorf("%s: %v, after the time of its caller: %v", name, err, ctx.Err())
			}
		})
	}
}
