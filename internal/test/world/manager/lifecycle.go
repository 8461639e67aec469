package manager

import (
	"context"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Lifecycle is how Nodes are watched.
type Lifecycle struct {
	// Every is the time between two looks, Grace how long a kubelet may not renew its Lease. Those of a cluster are 5 s and 50 s.
	Every, Grace time.Duration
	Log          *slog.Logger
}

// Run writes, until the context ends, that it is not known whether a Node is Ready whose Lease was not renewed in time, and removes
// Leases whose Node is not there any longer (pkg/controller/nodelifecycle, and garbagecollector of Kubernetes). A Node that never had a Lease is
// left alone. As the controller, it goes by when it has seen a Lease change, not by the clock of the host.
func (l Lifecycle) Run(ctx context.Context, admin *rest.Config) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	seen := map[types.UID]sighting{}
	for {
		if err := l.look(ctx, clients, seen); err != nil && ctx.Err() == nil {
			l.Log.Warn("looking at the Leases of Nodes", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.Every):
		}
	}
}

// sighting is a Lease as it was when it has changed last.
type sighting struct {
	version string
	at      time.Time
}

func (l Lifecycle) look(ctx context.Context, clients kubernetes.Interface, seen map[types.UID]sighting) error {
	leases, err := clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, lease := range leases.Items {
		if last := seen[lease.UID]; last.version != lease.ResourceVersion {
			seen[lease.UID] = sighting{lease.ResourceVersion, time.Now()}
			continue
		} else if time.Since(last.at) <= l.Grace {
			continue
		}
		if err := l.missNode(ctx, clients, lease); err != nil {
			return err
		}
	}
	return nil
}

// missNode is called for a Lease that is not renewed.
func (l Lifecycle) missNode(ctx context.Context, clients kubernetes.Interface, lease coordinationv1.Lease) error {
	n, err := clients.CoreV1().Nodes().Get(ctx, lease.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && len(lease.OwnerReferences) > 0 && lease.OwnerReferences[0].UID != n.UID {
		err = clients.CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	changed := false
	for i, c := range n.Status.Conditions {
		if isOfKubelet(c.Type) && c.Status != corev1.ConditionUnknown {
			changed = true
			n.Status.Conditions[i].Status, n.Status.Conditions[i].LastTransitionTime = corev1.ConditionUnknown, metav1.Now()
			n.Status.Conditions[i].Reason, n.Status.Conditions[i].Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
		}
	}
	if !changed {
		return nil
	}
	if _, err = clients.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
		return nil // it is looked at again
	}
	return err
}

// isOfKubelet reports whether a condition is one that kubelets write.
func isOfKubelet(kind corev1.NodeConditionType) bool {
	switch kind { //nolint:exhaustive // the others are of other programs
	case corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return true
	}
	return false
}
