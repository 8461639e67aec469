package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"wmco/internal/test/simnode/identity"
	"wmco/internal/test/simnode/overlay"
)

// HybridNetwork is the network of Windows pods in golden/clusters: each node gets a /24 of it.
const HybridNetwork = "10.132.0.0/14"

// hostBits are those of a node's subnet.
const hostBits = 24

// Network is the cluster network towards Windows nodes, until the context ends: it allocates a subnet of the hybrid
// network for each Windows Node that has none, as ovnkube-cluster-manager does, and approves the certificates of
// hybrid-overlay-node, whose permissions it makes.
func Network(ctx context.Context, admin *rest.Config, log *slog.Logger) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	if err := permitOverlay(ctx, clients); err != nil {
		return err
	}
	a := &allocator{clients: clients, log: log, used: map[string]bool{}}
	go a.allocateSubnets(identity.Context(ctx, log))
	return approveNetwork(ctx, admin, log)
}

// permitOverlay lets hybrid-overlay-node read Nodes and annotate them, as OVN-Kubernetes' roles do.
func permitOverlay(ctx context.Context, clients kubernetes.Interface) error {
	name := metav1.ObjectMeta{Name: "simnode-ovn-nodes"}
	_, err := clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{
			"create", "get", "list", "watch",
		}},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: overlay.Group}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// allocator gives subnets to Nodes. Its handlers are called one after another.
type allocator struct {
	clients kubernetes.Interface
	log     *slog.Logger
	used    map[string]bool
}

// allocateSubnets returns when the context ends.
func (a *allocator) allocateSubnets(ctx context.Context) {
	nodes := a.clients.CoreV1().Nodes()
	windows := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelOSStable: "windows"}})
	give := func(o any) {
		if n, ok := o.(*corev1.Node); ok {
			if err := a.giveSubnet(ctx, n); err != nil && ctx.Err() == nil {
				a.log.Warn("giving a subnet to a Node", "node", n.Name, "error", err)
			}
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = windows
				return nodes.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = windows
				return nodes.Watch(ctx, o)
			},
		},
		ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: give, UpdateFunc: func(_, now any) { give(now) }, DeleteFunc: func(o any) {
			if n, ok := o.(*corev1.Node); ok {
				delete(a.used, n.Annotations[overlay.SubnetAnnotation])
			}
		}},
	})
	controller.RunWithContext(ctx)
}

func (a *allocator) giveSubnet(ctx context.Context, n *corev1.Node) error {
	if has := n.Annotations[overlay.SubnetAnnotation]; has != "" {
		a.used[has] = true
		return nil
	}
	subnet, err := a.freeSubnet()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{overlay.SubnetAnnotation: subnet}}})
	if err != nil {
		return err
	}
	if _, err = a.clients.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
		a.used[subnet] = true
	}
	return err
}

// freeSubnet returns the first subnet that no Node has.
func (a *allocator) freeSubnet() (string, error) {
	network := netip.MustParsePrefix(HybridNetwork)
	for at := network.Addr(); network.Contains(at); {
		subnet := netip.PrefixFrom(at, hostBits).String()
		if !a.used[subnet] {
			return subnet, nil
		}
		next := at.As4()
		next[2]++
		if next[2] == 0 {
			next[1]++
		}
		at = netip.AddrFrom4(next)
	}
	return "", fmt.Errorf("no subnet of %s is free", HybridNetwork)
}
