package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/drain"
	"wmco/controller/executor"
)

// parallelDrains is how many nodes are drained at the same time. A round of evictions is short, and waits for nothing.
const parallelDrains = 4

// addExecutor adds what drains nodes, and returns what makes the steps of the rollout. Changed is signalled when a drain has got further.
func addExecutor(m base.Manager, o Options, changed base.Signal) (*executor.Executor, error) {
	clients, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	begun := make(drainQueue, 1)
	drains := &executor.Drains{
		Drainer: drain.Drainer{Client: clients}, Live: m.GetAPIReader(), Events: m.GetEventRecorder(operatorName),
		Begin: begun.add, Changed: changed.Send,
	}
	c, err := m.NewController("drains", drains, parallelDrains)
	if err != nil {
		return nil, err
	}
	nodes := handler.TypedFuncs[string, reconcile.Request]{GenericFunc: func(_ context.Context, e event.TypedGenericEvent[string], q base.Queue) {
		q.Add(base.RequestsFor([]string{e.Object})[0])
	}}
	if err := c.Watch(source.TypedChannel(chan event.TypedGenericEvent[string](begun), nodes)); err != nil {
		return nil, err
	}
	return &executor.Executor{
		Nodes: m.Kinds.Reader(m.GetClient()), Decoded: m.Decoded, Live: m.GetAPIReader(), Client: m.GetClient(), Pods: clients, Drains: drains, Namespace: o.Namespace,
		Deployment: &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.Namespace, Name: operatorName},
		Events:     m.GetEventRecorder(operatorName), Log: o.Log.WithName("rollout"), Now: o.Now, Elapsed: o.Elapsed, Heartbeats: o.Silence,
	}, nil
}

// drainQueue are the nodes whose pods are to be evicted.
type drainQueue chan event.TypedGenericEvent[string]

// add adds a node. When the operator ends, nobody takes nodes from the queue any longer, and nobody waits for that.
func (q drainQueue) add(ctx context.Context, node string) {
	select {
	case q <- event.TypedGenericEvent[string]{Object: node}:
	case <-ctx.Done():
	}
}
