package join

import (
	"context"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// InstancesName is the ConfigMap with the instances.
const InstancesName = "windows-instances"

// Instances makes the hosts of windows-instances nodes. A request names an address.
type Instances struct {
	Joiner    *Joiner
	Namespace string
	Events    events.EventRecorder
	Log       logr.Logger
}

// Reconcile does the next steps for one entry.
func (i *Instances) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := i.Joiner.Join(ctx, Ref{Address: req.Name})
	if err != nil {
		return reconcile.Result{}, err
	}
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: i.Namespace, Name: InstancesName}
	if p.Message != "" {
		p.Message = req.Name + ": " + p.Message
	}
	tell(i.Events, about, p, eventInstanceSetup, eventInstanceSetupFailure)
	i.Log.V(1).Info("instance", "address", req.Name, "state", p.State, "reason", p.Reason)
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// tell says on an object that a host has joined, or why it has not.
func tell(recorder events.EventRecorder, about runtime.Object, p Progress, done, failure string) {
	switch {
	case p.Finished:
		recorder.Eventf(about, nil, corev1.EventTypeNormal, done, actionJoin, "%s", p.Text())
	case p.State == StateFailed || p.State == StateWaiting:
		recorder.Eventf(about, nil, corev1.EventTypeWarning, failure, actionJoin, "%s: %s", p.Reason, p.Text())
	}
}

// reference names a Machine in an event.
func reference(m *machinev1beta1.Machine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}
