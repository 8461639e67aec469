package admission

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
	"wmco/render/machines"
)

// OperatorSecrets returns the policy that holds the operator's account to the Secrets that the operator has a reason to
// write, and its binding. RBAC has rules for names, not for types: a Secret of type kubernetes.io/service-account-token
// gets the token of a ServiceAccount that an annotation names (kubernetes.io/docs/concepts/configuration/secret),
// whatever the Secret's own name is. Namespace is that of the operator.
//
// A policy is not asked about policies (k8s.io/apiserver, admission/plugin/policy/generic): it binds an account that
// may not change it.
func OperatorSecrets(namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: Operator},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionv1.Fail),
			MatchConstraints: core([]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "secrets"),
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "operator", Expression: fmt.Sprintf(
					"request.userInfo.username == 'system:serviceaccount:%s:%s'", namespace, Operator,
				),
			}},
			Validations: []admissionv1.Validation{
				{
					Expression: fmt.Sprintf("request.namespace == '%s' || request.namespace in %s && object.metadata.name == '%s'",
						namespace, list(machines.Namespace, machines.ClusterAPINamespace), machines.UserDataSecret),
					Message: "the operator for Windows nodes writes Secrets of its own namespace, and " +
						machines.UserDataSecret + " where Machines are",
				},
				{
					Expression: "object.type in " + list(string(corev1.SecretTypeOpaque), published.SecretType),
					Message: "the operator for Windows nodes writes no Secret that gets the token of a " +
						"ServiceAccount, or is another credential of the cluster",
				},
			},
		},
	}
	return policy, bind(Operator)
}

// list returns a list of texts as CEL writes it.
func list(texts ...string) string { return "['" + strings.Join(texts, "', '") + "']" }
