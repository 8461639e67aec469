package manager

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

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

// Run writes, until the context ends, that it is not known whether a Node is Ready whose Lease was not renewed in time, and removes Leases of Nodes that
// are not there any longer (pkg/controller/nodelifecycle, and garbagecollector of Kubernetes). A Node that never had a Lease is left alone. As the
// controller, it goes by when it has seen a Lease change, not by the clock of the host.
func (l Lifecycle) Run(ctx context.Context, admin *rest.Config) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	seen := map[string]sighting{}
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

// look compares all Leases with what was seen of them, by the names of their Nodes.
func (l Lifecycle) look(ctx context.Context, clients kubernetes.Interface, seen map[string]sighting) error {
	list, err := clients.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 && len(seen) == 0 {
		return err
	}
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	uids := map[string]types.UID{}
	for _, n := range nodes.Items {
		uids[n.Name] = n.UID
	}
	maps.DeleteFunc(seen, func(name string, _ sighting) bool { return uids[name] == "" })
	var errs []error
	for _, x := range list.Items {
		switch owners := x.OwnerReferences; {
		case len(owners) > 0 && owners[0].UID != uids[x.Name]:
			err := clients.CoordinationV1().Leases(x.Namespace).Delete(ctx, x.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &x.UID}})
			errs = append(errs, ignoreChanged(err))
		case uids[x.Name] != "" && seen[x.Name].version != x.ResourceVersion:
			seen[x.Name] = sighting{x.ResourceVersion, time.Now()}
		}
	}
	for _, n := range nodes.Items {
		if last, ok := seen[n.Name]; ok && time.Since(last.at) > l.Grace {
			errs = append(errs, ignoreChanged(missNode(ctx, clients, n.DeepCopy())))
		}
	}
	return errors.Join(errs...)
}

// ignoreChanged ignores that an object has changed: it is looked at again.
func ignoreChanged(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// missNode is called for a Node whose Lease is not renewed.
func missNode(ctx context.Context, clients kubernetes.Interface, n *corev1.Node) error {
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
	_, err := clients.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// isOfKubelet reports whether a condition is one that kubelets write.
func isOfKubelet(kind corev1.NodeConditionType) bool {
	switch kind {
	case corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return true
	}
	return false
}
