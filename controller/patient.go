package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryConflict is how long after a conflict an object is looked at again.
const retryConflict = time.Second

// patient calls again where somebody else has changed an object since it was read: kubelets, agents and approvers write the same objects,
// so that is no error.
type patient struct {
	reconcile.Reconciler
	log logr.Logger
}

func (p patient) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		p.log.V(1).Info("an object has changed meanwhile", "name", req.Name, "error", err)
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	}
	return result, err
}
