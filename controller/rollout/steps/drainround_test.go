package steps

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/internal/test/testenv"
)

// workload creates a pod that runs on a node and is Ready, as its kubelet would say. A budget counts only such pods.
func (p *plane) workload(name, node string) {
	p.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}},
	}
	p.create(pod)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	must(p.t, p.Status().Update(p.t.Context(), pod))
}

// budget creates a PodDisruptionBudget of the pods of an app. No controller counts them.
func (p *plane) budget(name, app string) *policyv1.PodDisruptionBudget {
	p.t.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
	p.create(b)
	return b
}

// denyEviction has the API server deny the eviction of a pod, and waits until it does.
func (p *plane) denyEviction(pod, why string) {
	p.t.Helper()
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
	}
	p.create(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "evictions"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
		Validations:      []admissionv1.Validation{{Expression: "object.metadata.name != '" + pod + "'", Message: why}},
	}})
	p.create(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "evictions"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "evictions", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}})
	must(p.t, testenv.Eventually(p.t.Context(), "the policy", func() bool {
		trial := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: pod},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		}
		return apierrors.IsInvalid(p.Drains.Drainer.Client.PolicyV1().Evictions(metav1.NamespaceDefault).Evict(p.t.Context(), trial))
	}))
}

// ending are the pods that were told to end.
func (p *plane) ending() []string {
	p.t.Helper()
	var pods corev1.PodList
	must(p.t, p.List(p.t.Context(), &pods, client.InNamespace(metav1.NamespaceDefault)))
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestAPodThatMayNotBeEvictedKeepsNoOtherWaiting: one whose budget was not counted yet, for which the API server asks for a pause of ten seconds,
// one whose budget allows no disruption, one with two budgets, and one whose eviction a policy denies. The pods before and after them are evicted in
// the same round, and the drain reports what each of them waits for.
func TestAPodThatMayNotBeEvictedKeepsNoOtherWaiting(t *testing.T) {
	p := newPlane(t)
	p.node("win-guarded", rendered(t, "old", bundle.ImpactReboot))
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	for _, name := range []string{"a-free", "b-new", "c-full", "d-denied", "d-two", "e-free"} {
		p.workload(name, "win-guarded")
	}
	p.budget("new", "b-new")
	full := p.budget("full", "c-full")
	full.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: full.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
	must(t, p.Status().Update(t.Context(), full))
	p.budget("first", "d-two")
	p.budget("second", "d-two")
	p.denyEviction("d-denied", "ask its owner first")
	began := time.Now()
	left, err := p.Drains.Drainer.EvictOnce(t.Context(), "win-guarded")
	must(t, err)
	if took := time.Since(began); took > 90*time.Second { // with the pauses of client-go it takes 100 s
		t.Errorf("the round took %v", took)
	}
	if got := p.ending(); !slices.Equal(got, []string{"a-free", "e-free"}) {
		t.Errorf("%q are evicted", got)
	}
	for _, text := range []string{
		"default/b-new by PodDisruptionBudget new", "default/c-full by PodDisruptionBudget full",
		"default/d-denied by the API server: ", "ask its owner first", "default/d-two by PodDisruptionBudgets first, second: a pod with more than one is not evicted",
	} {
		if !strings.Contains(left.String(), text) {
			t.Errorf("%q is missing: %s", text, left)
		}
	}
	if len(left.Pods) != 6 || len(left.Blocked) != 4 {
		t.Errorf("%d pods are left, %d are blocked", len(left.Pods), len(left.Blocked))
	}
}

// TestAPodWithAnImpossibleOwnerKeepsNoOtherWaiting: whoever may create a pod names its owner, and kubectl cannot ask for a DaemonSet of such a name.
func TestAPodWithAnImpossibleOwnerKeepsNoOtherWaiting(t *testing.T) {
	p := newPlane(t)
	p.node("win-owned", rendered(t, "old", bundle.ImpactReboot))
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	p.workload("f-free", "win-owned")
	p.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "f-owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "a/b", UID: "d7e6a0e5-0000-4000-8000-000000000000", Controller: new(true)},
		}},
		Spec: corev1.PodSpec{NodeName: "win-owned", Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}},
	})
	left, err := p.Drains.Drainer.EvictOnce(t.Context(), "win-owned")
	must(t, err)
	if got := p.ending(); !slices.Equal(got, []string{"f-free"}) {
		t.Errorf("%q are evicted", got)
	}
	remaining, err := p.Drains.Drainer.RemainingPods(t.Context(), "win-owned")
	must(t, err)
	if len(left.Pods) != 2 || len(left.Blocked) != 1 || len(remaining.Pods) != 2 || !strings.Contains(left.String(), "default/f-owned") {
		t.Errorf("%+v, then %+v", left, remaining)
	}
}
