package drain

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// PodsAtATime is how many pods are in memory whole: a kubelet makes as many mirror pods of its own node as it
	// likes, each as large as an object may be.
	PodsAtATime = 25
	// mostLabels is how many labels of a pod are kept, by which the PodDisruptionBudgets of one that is not evicted are
	// found.
	mostLabels = 100
	// mostText is longer than any name, kind and phase that means something.
	mostText = 512
)

// BoundedText returns the beginning of a text of which an API server bounds nothing, such as the name of an owner.
func BoundedText[T ~string](text T) T {
	if len(text) <= mostText {
		return text
	}
	return T(strings.Clone(string(text[:mostText]))) // a part would keep the whole in memory
}

// listing is a client whose lists of pods have of each what decides about its eviction.
type listing struct{ kubernetes.Interface }

func (l listing) CoreV1() typedcorev1.CoreV1Interface { return listingCore{l.Interface.CoreV1()} }

type listingCore struct{ typedcorev1.CoreV1Interface }

func (c listingCore) Pods(namespace string) typedcorev1.PodInterface {
	return listingPods{c.CoreV1Interface.Pods(namespace)}
}

type listingPods struct{ typedcorev1.PodInterface }

func (p listingPods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	list, err := p.PodInterface.List(ctx, o)
	if err != nil {
		return nil, err
	}
	short := &corev1.PodList{TypeMeta: list.TypeMeta, ListMeta: list.ListMeta}
	for i := range list.Items {
		short.Items = append(short.Items, whatDecides(&list.Items[i]))
	}
	return short, nil
}

// whatDecides returns of a pod what kubectl's filters look at, and what the message about one that is not evicted
// needs.
func whatDecides(pod *corev1.Pod) corev1.Pod {
	short := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			DeletionTimestamp: pod.DeletionTimestamp},
		Status: corev1.PodStatus{Phase: BoundedText(pod.Status.Phase)},
	}
	if len(pod.Labels) <= mostLabels {
		short.Labels = pod.Labels
	}
	if _, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; isMirror {
		short.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		short.OwnerReferences = []metav1.OwnerReference{{APIVersion: BoundedText(owner.APIVersion),
			Kind: BoundedText(owner.Kind), Name: BoundedText(owner.Name), Controller: owner.Controller}}
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }) {
		short.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	return short
}
