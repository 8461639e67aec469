package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/join"
	"wmco/controller/status"
)

// addCluster judges the cluster, at the start and every minute. A host that cannot join any longer, or can again, is said at once.
func (j joining) addCluster() error {
	changed := make(chan event.TypedGenericEvent[struct{}], 1)
	j.joiner.Unjoined.Changed = func() {
		select {
		case changed <- event.TypedGenericEvent[struct{}]{}:
		default: // one is waiting already
		}
	}
	c, err := j.controller("cluster", &join.Cluster{
		Checks: j.joiner.Checks, Unjoined: j.joiner.Unjoined, Inputs: j.joiner.Inputs, Client: j.GetClient(), Policies: policies(j, j.options.Namespace), Say: j.sayAs(join.Owner),
		Deployment: &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: j.options.Namespace, Name: operatorName},
		Events:     j.GetEventRecorder(operatorName), Log: j.options.Log.WithName("cluster"),
	}, parallelHosts)
	if err != nil {
		return err
	}
	again := handler.TypedFuncs[struct{}, reconcile.Request]{GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[struct{}], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(requestsFor([]string{"all"})[0], settle)
	}}
	return errors.Join(c.Watch(atStart()), c.Watch(source.TypedChannel(changed, again)))
}

// sayAs returns what writes all conditions of one field manager. Without the definition of their object they are in events alone, which the
// publisher says.
func (j joining) sayAs(owner string) func(context.Context, []metav1.Condition) error {
	w := status.Writer{Live: j.GetAPIReader(), Client: j.GetClient(), Namespace: j.options.Namespace, Owner: owner, Now: j.options.Now}
	return func(ctx context.Context, conditions []metav1.Condition) error {
		err := w.Write(ctx, status.Status{Conditions: conditions})
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
}

// policies are those of this cluster.
func policies(m manager.Manager, namespace string) join.Policies {
	return join.Policies{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: namespace}
}
