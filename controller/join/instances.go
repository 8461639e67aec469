package join

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/gather"
)

// InstancesName is the ConfigMap with the instances.
const InstancesName = gather.InstancesName

// Instances makes the hosts of windows-instances nodes. A request names an address.
type Instances struct {
	Joiner    *Joiner
	Namespace string
	Events    events.EventRecorder
	Log       logr.Logger
}

// SetupWithManager watches windows-instances, and the Nodes whose hosts have yet to join.
func (i *Instances) SetupWithManager(m base.Manager) error {
	c, err := m.NewHostController("instances", i, parallelHosts)
	if err != nil {
		return err
	}
	entries := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, u base.Object) []reconcile.Request {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if u.GetName() != InstancesName {
			return nil
		}
		return base.RequestsFor(slices.Sorted(maps.Keys(data)))
	})
	if err := c.Watch(source.Kind(m.GetCache(), base.NewObject(base.ConfigMapKind()), entries)); err != nil {
		return err
	}
	return c.Watch(source.Kind(m.GetCache(), base.NewObject(base.NodeKind()), handler.TypedEnqueueRequestsFromMapFunc(i.entriesOfNode), unjoinedNodes()))
}

// entriesOfNode returns the entry of the Node, and those with an address that it reports.
func (i *Instances) entriesOfNode(ctx context.Context, node base.Object) []reconcile.Request {
	u := base.NewObject(base.ConfigMapKind())
	if err := i.Joiner.Reader.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: InstancesName}, u); err != nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	names := append(base.Addresses(node), i.Joiner.recordOfNode(ctx, node).Entry)
	return base.RequestsFor(slices.DeleteFunc(slices.Sorted(maps.Keys(data)), func(entry string) bool { return !slices.Contains(names, strings.ToLower(entry)) }))
}

// Reconcile does the next steps for one entry.
func (i *Instances) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := i.Joiner.Join(ctx, Ref{Address: req.Name})
	if err != nil {
		return reconcile.Result{}, err
	}
	i.Joiner.Unjoined.Note(req.Name, p)
	if p.Message != "" {
		p.Message = req.Name + ": " + p.Message
	}
	tell(i.Events, aboutInstance(ctx, i.Joiner.Reader, i.Namespace, req.Name), p, eventInstanceSetup, eventInstanceSetupFailure)
	i.Log.V(1).Info("instance", "address", req.Name, "state", p.State, "reason", p.Reason)
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// aboutInstance names an entry of windows-instances in an event. With its UID, `oc describe configmap` shows the event; an object that
// cannot be read is named without.
func aboutInstance(ctx context.Context, r client.Reader, namespace, entry string) *corev1.ObjectReference {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	_ = r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: InstancesName}, u) // see above
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: InstancesName, UID: u.GetUID(), FieldPath: "data[" + entry + "]"}
}

// tell says on an object that a host has joined, or why it has not. Events that differ in their note alone are one for client-go, which
// keeps the first note: the action is the reason why, and each entry has a field path.
func tell(recorder events.EventRecorder, about runtime.Object, p Progress, done, failure string) {
	switch {
	case p.Finished:
		recorder.Eventf(about, nil, corev1.EventTypeNormal, done, actionJoin, "%s", p.Text())
	case p.State == StateFailed || p.State == StateWaiting:
		recorder.Eventf(about, nil, corev1.EventTypeWarning, failure, p.Reason, "%s: %s", p.Reason, p.Text())
	}
}

// reference names a Machine in an event.
func reference(m *machinev1beta1.Machine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}
