package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAConflictIsRetriedQuietly(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "node", errors.New("changed"))
	other := errors.New("other")
	later := reconcile.Result{RequeueAfter: time.Hour}
	for name, test := range map[string]struct {
		err    error
		want   error
		result reconcile.Result
	}{
		"no error":      {nil, nil, later},
		"another error": {other, other, later},
		"a conflict":    {conflict, nil, reconcile.Result{RequeueAfter: retryConflict}},
		"a wrapped one": {fmt.Errorf("writing: %w", conflict), nil, reconcile.Result{RequeueAfter: retryConflict}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return later, test.err })
			result, err := patient{inner, logr.Discard()}.Reconcile(t.Context(), reconcile.Request{})
			if fmt.Sprint(err) != fmt.Sprint(test.want) || result != test.result {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}
