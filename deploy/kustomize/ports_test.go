package kustomize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestEachPortIsInTheNetworkPolicy: a port of the Deployment that is not in the policy is reached by the kubelet of its node alone, which is for probes.
func TestEachPortIsInTheNetworkPolicy(t *testing.T) {
	var deployment appsv1.Deployment
	var policy networkingv1.NetworkPolicy
	for _, o := range shipped(t) {
		var err error
		switch o.GetKind() {
		case "Deployment":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment)
		case "NetworkPolicy":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &policy)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) || policy.Namespace != deployment.Namespace {
		t.Errorf("the policy selects other Pods: %v, %v", policy.Spec.PodSelector, err)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes); diff != "" || policy.Spec.Egress != nil {
		t.Errorf("the policy limits what the operator connects to (-want +got):\n%s", diff)
	}
	// from is who reaches a port: some namespaces, or everybody.
	from := map[string]string{}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			from[p.Port.String()] = "everybody"
			for _, peer := range rule.From {
				from[p.Port.String()] = strings.Join(peer.NamespaceSelector.MatchExpressions[0].Values, ", ")
			}
		}
	}
	want := map[string]string{}
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, p := range container.Ports {
		switch number := fmt.Sprint(p.ContainerPort); p.Name {
		case "health":
			if probe := container.LivenessProbe.HTTPGet.Port.StrVal; probe != p.Name {
				t.Errorf("the probes are at port %s", probe)
			}
		case "metrics":
			want[number] = "openshift-monitoring, openshift-user-workload-monitoring"
		case "webhook":
			want[number] = "everybody"
		default:
			t.Errorf("nothing is known of port %s", p.Name)
		}
		if !slices.ContainsFunc(container.Args, func(a string) bool { return strings.HasSuffix(a, fmt.Sprintf("-address=:%d", p.ContainerPort)) }) {
			t.Errorf("the operator does not listen at port %s", p.Name)
		}
	}
	if diff := cmp.Diff(want, from); diff != "" {
		t.Errorf("who reaches which port (-want +got):\n%s", diff)
	}
	addresses := slices.DeleteFunc(slices.Clone(container.Args), func(a string) bool { return !strings.Contains(a, "-address=") })
	if len(addresses) != len(container.Ports) {
		t.Errorf("the operator listens at %q, and its ports are %v", addresses, container.Ports)
	}
}

// TestTheLimitOfMemory is above what Go keeps to, and far above what a large cluster takes (docs/scale.md).
func TestTheLimitOfMemory(t *testing.T) {
	for _, o := range shipped(t) {
		if o.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment); err != nil {
			t.Fatal(err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Fatal("GOMEMLIMIT is not set")
		}
		soft, err := resource.ParseQuantity(strings.TrimSuffix(container.Env[i].Value, "B"))
		const fiveThousandNodes = 502 << 20
		hard := container.Resources.Limits.Memory()
		if err != nil || soft.Cmp(*hard) >= 0 || soft.Value() < 3*fiveThousandNodes || !container.Resources.Limits.Cpu().IsZero() {
			t.Errorf("GOMEMLIMIT is %s, the limits are %v: %v", container.Env[i].Value, container.Resources.Limits, err)
		}
	}
}
