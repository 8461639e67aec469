package configure

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/render"
)

// ActionJoin is the action of events about hosts that become nodes.
const ActionJoin = "Join"

const (
	// LabelIgnore keeps a Machine as it is, with the value ValueTrue.
	LabelIgnore = domain + "ignore"
	// ValueTrue is the value of labels that are set.
	ValueTrue = "true"
)

// InstancesName is the ConfigMap with the instances.
const InstancesName = render.InstancesConfigMap

// InstanceReference names an entry of windows-instances in an Event. `oc describe configmap` shows the Event because of
// the UID, which is empty if the ConfigMap cannot be read.
func InstanceReference(ctx context.Context, r client.Reader, namespace, entry string) *corev1.ObjectReference {
	var instances corev1.ConfigMap
	_ = r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: InstancesName}, &instances) // see above
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: InstancesName,
		UID: instances.UID, FieldPath: "data[" + entry + "]"}
}

// RecordProgress sends an Event about an object: that a host has joined, or why it has not. client-go merges Events that
// differ only in their note, and keeps the first note. So the action of a failure is its reason, and each entry has a
// field path.
func RecordProgress(recorder events.EventRecorder, about runtime.Object, p Progress, done, failure string) {
	if p.NotFetched != "" {
		recorder.Eventf(about, nil, corev1.EventTypeWarning, ReasonNotFetched, ActionJoin, "%s",
			published.Shorten("executables could not be fetched, and were sent over SSH: "+p.NotFetched))
	}
	switch {
	case p.Finished:
		recorder.Eventf(about, nil, corev1.EventTypeNormal, done, ActionJoin, "%s", p.DisplayText())
	case p.State == StateFailed || p.State == StateWaiting:
		recorder.Eventf(about, nil, corev1.EventTypeWarning, failure, p.Reason, "%s: %s", p.Reason, p.DisplayText())
	}
}
