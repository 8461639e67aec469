// Package admission has the admission policies of the project. The manifests beside it are made of them; an OLM bundle
// cannot carry a policy, so there the operator applies them while it runs.
package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// Names of the policies. Each is that of a binding too.
const (
	Name     = "windows-cloud-node-manager"
	Operator = "windows-machine-config-operator"
)

// taint is the taint that cloud-node-manager removes (k8s.io/cloud-provider/api).
const taint = "node.cloudprovider.kubernetes.io/uninitialized"

// CloudNodeManager returns the policy that binds the cloud-node-manager of a Windows node to its own Node, and its
// binding. RBAC cannot: it has one rule for the group. Of what NodeRestriction forbids to the node itself, which is why
// it has another identity, the policy only allows to remove one taint.
func CloudNodeManager() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionv1.Fail),
			MatchConstraints: core([]admissionv1.OperationType{admissionv1.OperationAll}, "nodes", "nodes/*"),
			MatchConditions: []admissionv1.MatchCondition{{Name: "cloud-node-manager", Expression: fmt.Sprintf(
				"request.userInfo.username.startsWith('%s') || has(request.userInfo.groups) && '%s' in request.userInfo.groups",
				published.CloudNodeManagerPrefix, published.CloudNodeManagerGroup,
			)}},
			Variables:   variables(),
			Validations: validations(),
		},
	}
	return policy, bind(Name)
}

// core matches requests about resources of the core group. The fields that the API server sets by default are set: a
// policy in the cluster is compared with this one.
func core(operations []admissionv1.OperationType, resources ...string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		MatchPolicy: new(admissionv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: resources,
				Scope: new(admissionv1.AllScopes),
			},
		}}},
	}
}

// bind returns the binding that makes the API server refuse what a policy refuses.
func bind(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// isNode is true for the Node itself and for its status, whose requests have a whole Node too. Of a request for the
// status the API server drops the spec alone: labels and annotations are changed with it (k8s.io/kubernetes
// pkg/registry/core/node, nodeStatusStrategy.PrepareForUpdate).
const isNode = "request.operation == 'UPDATE' && (!has(request.subResource) || request.subResource in ['', 'status'])"

func variables() []admissionv1.Variable {
	return []admissionv1.Variable{
		{Name: "isNode", Expression: isNode},
		{Name: "oldTaints", Expression: "variables.isNode && has(oldObject.spec.taints) ? oldObject.spec.taints : []"},
		{Name: "newTaints", Expression: "variables.isNode && has(object.spec.taints) ? object.spec.taints : []"},
		{Name: "oldLabels", Expression: "variables.isNode && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"},
		{Name: "newLabels", Expression: "variables.isNode && has(object.metadata.labels) ? object.metadata.labels : {}"},
	}
}

// unchanged is true where a field of the metadata of a Node stays as it is.
func unchanged(field string) string {
	return fmt.Sprintf("dyn(object).metadata.?%[1]s.orValue([]) == dyn(oldObject).metadata.?%[1]s.orValue([])", field)
}

func validations() []admissionv1.Validation {
	// isRole is true for labels that say what may run on a node
	// (kubernetes.io/docs/reference/access-authn-authz/admission-controllers, NodeRestriction).
	const isRole = "k.contains('node-restriction.kubernetes.io') || k.startsWith('node-role.kubernetes.io') || k " +
		"in ['kubernetes.io/role', 'kubernetes.io/hostname', 'kubernetes.io/os']"
	const same = "o.key == n.key && o.effect == n.effect && o.?value.orValue('') == n.?value.orValue('')"
	return []admissionv1.Validation{
		{
			Expression: fmt.Sprintf("request.userInfo.username == '%s' + request.name", published.CloudNodeManagerPrefix),
			Message:    "the cloud-node-manager of a Windows node changes its own Node only",
		},
		{
			Expression: "request.operation == 'UPDATE'",
			Message:    "the cloud-node-manager of a Windows node neither creates nor deletes Nodes",
		},
		{
			Expression: fmt.Sprintf(
				"variables.newTaints.all(n, variables.oldTaints.exists(o, %s)) && variables.oldTaints.all(o, "+
					"o.key == '%s' || variables.newTaints.exists(n, %s))",
				same, taint, same,
			),
			Message: "the cloud-node-manager of a Windows node changes no taint, but for removing " + taint,
		},
		{
			Expression: fmt.Sprintf(
				"variables.newLabels.all(k, !(%s) || k in variables.oldLabels && variables.oldLabels[k] == "+
					"variables.newLabels[k]) && variables.oldLabels.all(k, !(%s) || k in variables.newLabels)",
				isRole, isRole,
			),
			Message: "the cloud-node-manager of a Windows node changes no label that says what may run on the node",
		},
		{
			// A Node with an owner that does not exist is deleted by the garbage collector, and registers again with
			// the taints that its kubelet wants (CVE-2025-5187).
			Expression: "!variables.isNode || " + unchanged("ownerReferences") + " && " + unchanged("finalizers"),
			Message:    "the cloud-node-manager of a Windows node changes neither its owners nor its finalizers",
		},
	}
}
