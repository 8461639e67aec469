package controller

import (
	"context"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/olm"
	"wmco/deploy/network"
	"wmco/internal/test/testenv"
)

// TestTheOperatorLimitsItsPorts where no NetworkPolicy does.
func TestTheOperatorLimitsItsPorts(t *testing.T) {
	policy, err := network.Policy(gather.OperatorNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client(t).Delete(t.Context(), policy); client.IgnoreNotFound(err) != nil { // of another test's operator
		t.Fatal(err)
	}
	if err := start(t).Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
		t.Error(err)
	}
}

// TestOLMIsToldWhenAnUpgradeIsNotSafe with the permissions that OLM gives.
func TestOLMIsToldWhenAnUpgradeIsNotSafe(t *testing.T) {
	const name = "windows-machine-config-operator.v1"
	c := cluster.Client(t)
	cluster.Load(t, filepath.Join("testdata", "operatorcondition.yaml"))
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition", "metadata": map[string]any{"namespace": gather.OperatorNamespace, "name": name},
		"spec": map[string]any{"deployments": []any{operatorName}, "conditions": []any{map[string]any{
			"type": "Other", "status": "True", "reason": "a", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}},
	}}
	if err := testenv.Eventually(t.Context(), "the kind", func() bool { return c.Create(t.Context(), o.DeepCopy()) == nil }); err != nil {
		t.Fatal(err)
	}
	// Nothing is published for the node: it has no agent, and a node that applies its bundle is being changed.
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}, Data: map[string]string{"config.yaml": "rollout: {paused: true}"},
	}
	if err := c.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), settings); err != nil {
			t.Error(err)
		}
	})
	r := startWith(t, func(o *Options) { o.Environment = map[string]string{olm.ConditionVariable: name} })
	isUpgradeable := func(status, reason string) func() bool {
		return func() bool {
			have := o.DeepCopy()
			if err := r.Get(t.Context(), client.ObjectKeyFromObject(o), have); err != nil {
				t.Fatal(err)
			}
			list, _, _ := unstructured.NestedSlice(have.Object, "spec", "conditions")
			deployments, _, _ := unstructured.NestedStringSlice(have.Object, "spec", "deployments")
			if len(list) != 2 || len(deployments) != 1 {
				return false
			}
			c, _ := list[1].(map[string]any)
			return c["type"] == olm.ConditionUpgradeable && c["status"] == status && c["reason"] == reason
		}
	}
	annotate := func(text string) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
		patch := []byte(`{"metadata":{"annotations":{"` + published.JoiningAnnotation + `":` + text + `}}}`)
		if err := r.Patch(context.WithoutCancel(t.Context()), node, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	annotate(`"true"`)
	if err := r.eventually("that an upgrade is not safe", isUpgradeable("False", olm.ReasonNotSafe)); err != nil {
		t.Fatal(err)
	}
	annotate(`null`)
	if err := r.eventually("that it is safe again", isUpgradeable("True", olm.ReasonSafe)); err != nil {
		t.Fatal(err)
	}
}
