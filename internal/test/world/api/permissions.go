package api

import (
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic/registry"
)

const (
	rbacGroup = "rbac.authorization.k8s.io"
	nodeUser  = "system:node:"
)

// permissions decides as the authorizers of a cluster: administrators may do all, a kubelet what the node authorizer
// permits to it, everybody what Roles and ClusterRoles say.
type permissions struct {
	stores map[string]*registry.Store
	server *Server

	mu sync.Mutex
	// read is the revision of the bindings.
	read     int64
	bindings []binding
}

// binding is one RoleBinding or ClusterRoleBinding with the rules of its role. An empty namespace is the cluster.
type binding struct {
	namespace string
	subjects  []rbacv1.Subject
	rules     []rbacv1.PolicyRule
}

// Authorize implements authorizer.Authorizer.
func (p *permissions) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	who := a.GetUser()
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) || !a.IsResourceRequest() || ofKubelet(who, a) {
		return authorizer.DecisionAllow, "", nil
	}
	list, err := p.currentBindings(ctx)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	for _, b := range list {
		applies := (b.namespace == "" || b.namespace == a.GetNamespace()) &&
			slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return isSubject(who, s, b.namespace) })
		if applies && slices.ContainsFunc(b.rules, func(r rbacv1.PolicyRule) bool { return permitsRequest(r, a) }) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ofKubelet reports whether the node authorizer permits a request of a kubelet's certificate: its own Node, Lease and pods, Events
// and requests for certificates. No Pods lead to Secrets. What is written is checked again by restrictions.
func ofKubelet(who user.Info, a authorizer.Attributes) bool {
	node, ok := strings.CutPrefix(who.GetName(), nodeUser)
	if !ok {
		return false
	}
	verb := func(list ...string) bool { return slices.Contains(list, a.GetVerb()) }
	switch a.GetResource() + "/" + a.GetSubresource() {
	case "nodes/":
		return verb("create", "update", "patch") || verb("get", "list", "watch") && a.GetName() == node
	case "nodes/status", "pods/status":
		return verb("update", "patch")
	case "pods/":
		return verb("create", "delete") || verb("list", "watch") && selects(a, "spec.nodeName", node)
	case "events/":
		return verb("create", "update", "patch")
	case "certificatesigningrequests/":
		return verb("create", "get", "list", "watch")
	case "leases/":
		return a.GetNamespace() == corev1.NamespaceNodeLease && (verb("create") || verb("get", "update", "patch", "delete") && a.GetName() == node)
	}
	return false
}

// selects reports whether a request is for objects alone with a value in a field.
func selects(a authorizer.Attributes, name, value string) bool {
	list, err := a.GetFieldSelector()
	return err == nil && slices.ContainsFunc(list, func(r fields.Requirement) bool {
		return r.Field == name && r.Operator == selection.Equals && r.Value == value
	})
}

func isSubject(who user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == who.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(who.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return serviceaccount.MatchesUsername(namespace, s.Name, who.GetName())
	}
	return false
}

// permitsRequest is the rule of RBAC (kubernetes.io/docs/reference/access-authn-authz/rbac).
func permitsRequest(r rbacv1.PolicyRule, a authorizer.Attributes) bool {
	has := func(list []string, x string) bool { return slices.Contains(list, "*") || slices.Contains(list, x) }
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	return has(r.Verbs, a.GetVerb()) && has(r.APIGroups, a.GetAPIGroup()) && (has(r.Resources, resource) || a.GetSubresource() != "" && slices.Contains(r.Resources, "*/"+a.GetSubresource())) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.GetName()))
}

// currentBindings returns the bindings as they are.
func (p *permissions) currentBindings(ctx context.Context) ([]binding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := int64(0)
	for resource := range p.stores {
		changed = max(changed, p.server.Etcd.LastChange(resource+"."+rbacGroup))
	}
	if changed == p.read && p.bindings != nil {
		return p.bindings, nil
	}
	roles := map[string][]rbacv1.PolicyRule{}
	list, err := p.stores["roles"].List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range list.(*rbacv1.RoleList).Items {
		roles[r.Namespace+"/"+r.Name] = r.Rules
	}
	if list, err = p.stores["clusterroles"].List(ctx, &internalversion.ListOptions{}); err != nil {
		return nil, err
	}
	for _, r := range list.(*rbacv1.ClusterRoleList).Items {
		roles["/"+r.Name] = r.Rules
	}
	all := []binding{}
	of := func(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
		if ref.Kind == "ClusterRole" {
			namespace = ""
		}
		return roles[namespace+"/"+ref.Name]
	}
	if list, err = p.stores["rolebindings"].List(ctx, &internalversion.ListOptions{}); err != nil {
		return nil, err
	}
	for _, b := range list.(*rbacv1.RoleBindingList).Items {
		all = append(all, binding{b.Namespace, b.Subjects, of(b.Namespace, b.RoleRef)})
	}
	if list, err = p.stores["clusterrolebindings"].List(ctx, &internalversion.ListOptions{}); err != nil {
		return nil, err
	}
	for _, b := range list.(*rbacv1.ClusterRoleBindingList).Items {
		all = append(all, binding{"", b.Subjects, of("", b.RoleRef)})
	}
	p.read, p.bindings = changed, all
	return all, nil
}
