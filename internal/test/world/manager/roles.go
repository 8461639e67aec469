package manager

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// MakeRoles makes the ClusterRole with which a kubelet asks for its first certificate. An API server has it when it starts
// (kubernetes.io/docs/reference/access-authn-authz/rbac, Core component roles).
func MakeRoles(ctx context.Context, admin *rest.Config) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	_, err = clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "system:node-bootstrapper"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"},
		}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
