// Package instance has the controller that joins the hosts of windows-instances.
package instance

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/configure"
)

// Reasons of events, those of the existing operator.
const (
	eventInstanceSetup        = "InstanceSetup"
	eventInstanceSetupFailure = "InstanceSetupFailure"
)

// Instances makes the hosts of windows-instances nodes. A request names an address.
type Instances struct {
	Joiner    *configure.Joiner
	Namespace string
	Events    events.EventRecorder
	Log       logr.Logger
}

// SetupWithManager watches windows-instances, and the Nodes whose hosts have yet to join.
func (i *Instances) SetupWithManager(m base.Manager) error {
	c, err := m.NewHostController("instance", i, base.ParallelHosts)
	if err != nil {
		return err
	}
	entries := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, u base.Object) []reconcile.Request {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if u.GetName() != configure.InstancesName {
			return nil
		}
		return base.RequestsFor(slices.Sorted(maps.Keys(data)))
	})
	if err := c.Watch(source.Kind(m.GetCache(), base.NewObject(base.ConfigMapKind()), entries)); err != nil {
		return err
	}
	return c.Watch(source.Kind(m.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(i.entriesOfNode),
		configure.UnjoinedNodes()))
}

// entriesOfNode returns the entry of the Node, and those with an address that it reports.
func (i *Instances) entriesOfNode(ctx context.Context, node *corev1.Node) []reconcile.Request {
	u := base.NewObject(base.ConfigMapKind())
	if err := i.Joiner.Reader.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: configure.InstancesName},
		u); err != nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	names := append(base.NodeAddresses(node), i.Joiner.RecordOfNode(ctx, node).Entry)
	return base.RequestsFor(slices.DeleteFunc(slices.Sorted(maps.Keys(data)), func(entry string) bool {
		return !slices.Contains(names, strings.ToLower(entry))
	}))
}

// Reconcile does the next steps for one entry.
func (i *Instances) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := i.Joiner.JoinHost(ctx, configure.Ref{Address: req.Name})
	if err != nil {
		return reconcile.Result{}, err
	}
	i.Joiner.Unjoined.RecordProgress(req.Name, p)
	if p.Message != "" {
		p.Message = req.Name + ": " + p.Message
	}
	configure.RecordProgress(i.Events, configure.InstanceReference(ctx, i.Joiner.Reader, i.Namespace, req.Name), p,
		eventInstanceSetup, eventInstanceSetupFailure)
	i.Log.V(1).Info("instance", "address", req.Name, "state", p.State, "reason", p.Reason)
	return reconcile.Result{RequeueAfter: p.Again}, nil
}
