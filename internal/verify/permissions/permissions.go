// Package permissions compares the requests of operators in tests with their rights.
//
//	deploy/rbac --> permissions --.
//	                               Judge --> refused requests, and unneeded permissions
//	audit logs --> requests ------'
//
// The tests of internal/test/jointest keep the requests (Keep). A log that a test has not kept is an error: nothing is
// known about it.
package permissions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"wmco/controller/gather"
	"wmco/deploy/admission"
	"wmco/internal/test/testenv/controlplane"
	"wmco/internal/test/testenv/manifests"
)

// role is the name of the operator's roles and of its service account.
const role = "windows-machine-config-operator"

// OperatorUser is the user of the operator's service account.
const OperatorUser = "system:serviceaccount:" + gather.OperatorNamespace + ":" + role

// Permission is one permission of the operator: a rule has several.
type Permission struct {
	namespace, group, resource, verb string
	// names are those that it is limited to.
	names []string
	// watched reports whether the rule has the verb watch too.
	watched bool
}

// String is for messages.
func (p Permission) String() string {
	text := p.verb + " " + p.resource
	if p.group != "" {
		text += "." + p.group
	}
	if len(p.names) > 0 {
		text += " " + strings.Join(p.names, ", ")
	}
	return text
}

// permitsRequest reports whether a request needs the permission, or could be made with it.
func (p Permission) permitsRequest(r controlplane.Request) bool {
	applied := r.Verb == "patch" && r.Status == http.StatusCreated // it needs the permission to create too
	return (p.verb == r.Verb || applied && p.verb == "create") && p.group == r.Group && p.resource == r.Resource && (p.namespace == "" || p.namespace == r.Namespace) &&
		(len(p.names) == 0 || r.Name == "" && r.Verb != "create" || slices.Contains(p.names, r.Name))
}

// ReadShipped returns the permissions of the operator in a folder of manifests.
func ReadShipped(folder string) ([]Permission, error) {
	list, err := manifests.Read(folder)
	if err != nil {
		return nil, err
	}
	var all []Permission
	for _, m := range list {
		if !strings.HasSuffix(m.GetKind(), "Role") || m.GetName() != role {
			continue
		}
		var r rbacv1.Role // a ClusterRole has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", m, err)
		}
		for _, rule := range r.Rules {
			all = append(all, permissionsOf(r.Namespace, rule)...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no role %s", folder, role)
	}
	return all, nil
}

func permissionsOf(namespace string, rule rbacv1.PolicyRule) []Permission {
	var all []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, Permission{namespace, group, resource, verb, rule.ResourceNames, slices.Contains(rule.Verbs, "watch")})
			}
		}
	}
	return all
}

// JudgePermissions returns the problems of the permissions, a sentence each.
func JudgePermissions(shipped []Permission, requests []controlplane.Request) []string {
	return append(findRefused(shipped, requests), findUnused(shipped, requests)...)
}

// findRefused returns requests that the operator may not make. One that is permitted was refused because a test took
// the permission away, or by an API server that has just started.
func findRefused(shipped []Permission, requests []controlplane.Request) []string {
	var wrong []string
	for _, r := range requests {
		permitted := slices.ContainsFunc(shipped, func(p Permission) bool { return p.permitsRequest(r) })
		if text := fmt.Sprintf(
			"the operator may not: %s", r,
		); r.Status == http.StatusForbidden && !permitted && !isOptional(r) && !slices.Contains(wrong, text) {
			wrong = append(wrong, text)
		}
	}
	return wrong
}

func findUnused(shipped []Permission, requests []controlplane.Request) []string {
	var wrong []string
	for _, p := range shipped {
		used := slices.ContainsFunc(requests, func(r controlplane.Request) bool { return r.Status < http.StatusBadRequest && p.permitsRequest(r) })
		switch why := neededElsewhere(p); {
		case !used && why == "":
			wrong = append(wrong, fmt.Sprintf("nothing needs the permission to %s", p))
		case used && strings.HasPrefix(why, never):
			wrong = append(wrong, fmt.Sprintf("the permission to %s was used: it is not true that it %s", p, why))
		}
	}
	return wrong
}

// isOptional reports whether the operator makes requests that only some installations permit, with a condition for what it
// lacks: user data for the Cluster API and its Machines (deploy/cluster-api), and the policy about its own Secrets,
// which manifests bring and the operator applies under OLM.
func isOptional(r controlplane.Request) bool {
	return r.Namespace == "openshift-cluster-api" && (r.Resource == "secrets" && r.Name == "windows-user-data" || r.Resource == "machines") ||
		strings.HasPrefix(r.Resource, "validatingadmissionpolic") && r.Name == admission.Operator
}

// never begins the reasons that an audit log cannot show otherwise.
const never = "is never a request: "

// unserved are kinds that clusters of these tests do not serve; controller/prerequisites has them.
var unserved = []string{
	"imagepolicies", "criocredentialproviderconfigs", "kubeletconfigs",
	"containerruntimeconfigs", "machineconfigurations",
}

// neededElsewhere returns where a permission is used that no test with a kept log may need.
func neededElsewhere(p Permission) string {
	switch {
	case p.resource == "signers":
		return never + "the API server checks it when a request is approved"
	case p.verb == "list" && p.watched:
		return "is for API servers that do not stream lists"
	case p.verb == "get" && p.resource == "nodes":
		return "is for a Node that has changed while a bundle was published on it (controller/layers)"
	case p.resource == "tokenreviews" || p.resource == "subjectaccessreviews":
		return "is for those who read metrics, which operators of these tests do not serve (tests of controller)"
	case slices.Contains(unserved, p.resource):
		return "is for kinds that clusters of these tests do not serve (controller/prerequisites)"
	case p.resource == "networkpolicies":
		return "is for an operator whose manifests do not bring the policy, as with OLM (tests of deploy/rbac)"
	case p.resource == "machinehealthchecks":
		return "is for a rollout that boots a Machine (controller/rollout/steps)"
	case p.verb == "delete" && p.resource == "rolebindings":
		return "is for a binding to another role, which cannot be changed (controller/layers)"
	case p.verb == "patch" && p.resource == "events":
		return "is for events that repeat for minutes"
	}
	return ""
}
