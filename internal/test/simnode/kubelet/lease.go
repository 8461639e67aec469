package kubelet

import (
	"context"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepLease follows the controller in k8s.io/component-helpers/apimachinery/lease.
func (k *kubelet) keepLease(ctx context.Context) {
	var last *coordinationv1.Lease
	every(ctx, func() time.Duration { return jitter(k.Times.Lease) }, func() {
		var err error
		if last, err = k.renewLease(ctx, last); err != nil && ctx.Err() == nil {
			k.Log.Warn("renewing the Lease", "error", err)
		}
	})
}

// jitter is up to 4 % longer (leaseControllerRenewJitterFactor).
func jitter(d time.Duration) time.Duration { return d + rand.N(d/25+1) }

// renewLease updates the Lease that it returned last, or looks for it, or makes it.
func (k *kubelet) renewLease(ctx context.Context, last *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := k.leases.Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(k.Now())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &k.name, LeaseDurationSeconds: &k.config.NodeLeaseDurationSeconds, RenewTime: &now}
	if last == nil {
		found, err := leases.Get(ctx, k.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return k.createLease(ctx, spec)
		}
		if err != nil {
			return nil, err
		}
		last = found
	}
	last = last.DeepCopy()
	last.Spec = spec
	renewed, err := leases.Update(ctx, last, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return renewed, nil
}

// createLease makes it with the Node as its owner: without one it would stay for ever.
func (k *kubelet) createLease(ctx context.Context, spec coordinationv1.LeaseSpec) (*coordinationv1.Lease, error) {
	node, err := k.core.Nodes().Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	return k.leases.Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: corev1.NamespaceNodeLease, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       spec,
	}, metav1.CreateOptions{})
}
