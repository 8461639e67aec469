package prerequisites

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/base/policies"
	"wmco/deploy/admission"
)

// TestAMissingPolicyIsSaid: what binds an account is missing, and the operator may not apply it.
func TestAMissingPolicyIsSaid(t *testing.T) {
	ownPolicy, ownBinding := admission.OperatorSecrets("wmco")
	cloudPolicy, cloudBinding := admission.CloudNodeManager()
	all := []client.Object{ownPolicy, ownBinding, cloudPolicy, cloudBinding}
	for name, tt := range map[string]struct {
		missing    client.Object
		own, cloud metav1.ConditionStatus
	}{
		"none":                              {&corev1.ConfigMap{}, metav1.ConditionTrue, metav1.ConditionTrue},
		"that of the operator's Secrets":    {ownPolicy, metav1.ConditionFalse, metav1.ConditionTrue},
		"the binding of it":                 {ownBinding, metav1.ConditionFalse, metav1.ConditionTrue},
		"that of cloud-node-manager":        {cloudPolicy, metav1.ConditionTrue, metav1.ConditionFalse},
		"the binding of cloud-node-manager": {cloudBinding, metav1.ConditionTrue, metav1.ConditionFalse},
	} {
		build := fake.NewClientBuilder()
		for _, o := range all {
			if o != tt.missing {
				build = build.WithObjects(o)
			}
		}
		live := interceptor.NewClient(build.Build(), interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewForbidden(corev1.Resource("policies"), "", errors.New("no rule"))
		}})
		p := policies.Policies{Live: live, Client: live, Namespace: "wmco"}
		for _, check := range []struct {
			got    metav1.Condition
			kind   string
			status metav1.ConditionStatus
			fix    string
		}{
			{secretWrites(t.Context(), p), policies.SecretWritesBound, tt.own, "fix: apply the file operator.yaml"},
			{(&Cluster{Policies: p}).bindCloudIdentities(t.Context()), CloudIdentitiesBound, tt.cloud, "fix: apply the file cloud-node-manager.yaml"},
		} {
			isNamed := strings.Contains(check.got.Message, tt.missing.GetObjectKind().GroupVersionKind().Kind) && strings.Contains(check.got.Message, check.fix)
			missing := check.got.Reason == policies.ReasonPolicyNotApplied && isNamed
			if check.got.Type != check.kind || check.got.Status != check.status || missing != (check.status == metav1.ConditionFalse) {
				t.Errorf("without %s: %+v, want %s %s", name, check.got, check.kind, check.status)
			}
		}
	}
}
