package api

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// evictions are the requests of pods/eviction. A PodDisruptionBudget allows what its status says, as in a cluster; who
// keeps that status is the test.
type evictions struct{ pods, podStatus, budgets, budgetStatus *registry.Store }

var (
	_ rest.NamedCreater             = evictions{}
	_ rest.GroupVersionKindProvider = evictions{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (evictions) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// New implements rest.Storage.
func (evictions) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (evictions) Destroy() {}

// Create implements rest.NamedCreater.
func (e evictions) Create(ctx context.Context, name string, o runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := o.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", o))
	}
	found, err := e.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := found.(*corev1.Pod)
	done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil
	if !done {
		if err := e.takeDisruption(ctx, pod); err != nil {
			return nil, err
		}
	}
	if _, _, err := e.podStatus.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, addDisruption), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	options := eviction.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if _, _, err := e.pods.Delete(ctx, name, rest.ValidateAllObjectFunc, options); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// addDisruption adds the condition of a pod that is evicted (registry/core/pod/storage/eviction.go of Kubernetes).
func addDisruption(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
	pod := old.(*corev1.Pod).DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", LastTransitionTime: metav1.Now(),
	})
	return pod, nil
}

// takeDisruption takes one disruption of the budget of a pod.
func (e evictions) takeDisruption(ctx context.Context, pod *corev1.Pod) error {
	list, err := e.budgets.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	for _, b := range list.(*policyv1.PodDisruptionBudgetList).Items {
		selects, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selects.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if _, _, err := e.budgetStatus.Update(ctx, b.Name, rest.DefaultUpdatedObjectInfo(nil, takeOne), rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func takeOne(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
	b := old.(*policyv1.PodDisruptionBudget).DeepCopy()
	if b.Status.DisruptionsAllowed < 1 {
		refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy,
				b.Status.CurrentHealthy),
		})
		return nil, refused
	}
	b.Status.DisruptionsAllowed--
	return b, nil
}
