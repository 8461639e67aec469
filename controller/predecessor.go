package controller

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"wmco/controller/base/ports"
)

// predecessorLock is the ConfigMap with which the existing operator makes sure that it is alone. It is never given
// back: the Pod that owns it holds it as long as the Pod exists (operator-framework/operator-lib, leader).
const predecessorLock = "windows-machine-config-operator-lock"

// startError explains why the operator cannot start. Where the API server refuses its credentials or its rights, that is
// the whole message: what it was about to do has nothing to do with it.
func startError(doing string, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not accept the operator's credentials (401); fix: check the token of "+
			"its ServiceAccount, or KUBECONFIG: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the operator lacks a right (403); fix: apply deploy/rbac: %w", err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// askAgain is how often the existing operator is looked for.
const askAgain = 5 * time.Second

// awaitPredecessor returns when no Pod of the existing operator works for the cluster. Nothing is written before.
// Until then the process is alive and not ready.
func awaitPredecessor(ctx context.Context, o Options) error {
	c, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return err
	}
	pod, err := findPredecessor(ctx, c, o.Namespace)
	if pod == "" || err != nil {
		return err
	}
	stop, err := serveWaiting(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	for pod != "" {
		o.Log.Info("the existing operator still runs; waiting until its Pod has ended. fix: scale its Deployment to "+
			"0, or delete the Pod if its node no longer exists", "pod", pod, "lock", predecessorLock)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.Clock.After(askAgain):
		}
		if pod, err = findPredecessor(ctx, c, o.Namespace); err != nil {
			return err
		}
	}
	o.Log.Info("the existing operator has stopped")
	return nil
}

// findPredecessor returns the Pod that holds the lock of the existing operator, empty if none does.
func findPredecessor(ctx context.Context, c kubernetes.Interface, namespace string) (string, error) {
	lock, err := c.CoreV1().ConfigMaps(namespace).Get(ctx, predecessorLock, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", predecessorLock, err)
	}
	i := slices.IndexFunc(lock.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Pod" })
	if i < 0 {
		return "", nil
	}
	owner := lock.OwnerReferences[i]
	pod, err := c.CoreV1().Pods(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading Pod %s, which holds ConfigMap %s: %w", owner.Name, predecessorLock, err)
	case pod.UID != owner.UID || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return "", nil // evicted, or another one of this name
	}
	return pod.Name, nil
}

// serveWaiting answers the probes until the returned function is called.
func serveWaiting(ctx context.Context, o Options) (stop func(), err error) {
	if o.HealthAddress == "" || o.HealthAddress == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.HealthAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for probes: %w", err)
	}
	server := ports.Server(probesHandler("waiting until the existing operator has stopped"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := server.Serve(listener)
		o.Log.V(1).Info("probes are no longer answered by the waiting operator", "reason", err.Error())
	}()
	return func() {
		_ = server.Close() // the listener is all that it has
		<-ended
	}, nil
}
