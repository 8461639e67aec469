package testenv

import (
	"context"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Without hides kinds until the end of the test, as if they had not been defined. The names are those of definitions,
// such as "machines.machine.openshift.io". Without names it hides every kind that is not part of Kubernetes.
func (e *Environment) Without(t testing.TB, names ...string) {
	t.Helper()
	e.Config(t)
	var hidden []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range e.plane.CRDs {
		if len(names) == 0 || slices.Contains(names, crd.Name) {
			hidden = append(hidden, crd)
		}
	}
	if len(names) > 0 && len(hidden) != len(names) {
		t.Fatalf("only %d of %q are definitions", len(hidden), names)
	}
	t.Cleanup(func() {
		if err := e.serveKinds(context.Background(), hidden); err != nil {
			t.Errorf("serving kinds again: %v", err)
		}
	})
	if err := e.hideKinds(t.Context(), hidden); err != nil {
		t.Fatalf("hiding kinds: %v", err)
	}
}

// hideKinds is fast and can be undone. Deleting a definition is neither.
func (e *Environment) hideKinds(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := e.patchDefinition(ctx, crd, withoutServing(crd)); err != nil {
			return err
		}
	}
	return e.plane.Await(ctx, crds, meta.IsNoMatchError)
}

func (e *Environment) serveKinds(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := e.patchDefinition(ctx, withoutServing(crd), crd.DeepCopy()); err != nil {
			return err
		}
	}
	return e.plane.Await(ctx, crds, func(err error) bool { return err == nil })
}

func (e *Environment) patchDefinition(ctx context.Context, from, to *apiextensionsv1.CustomResourceDefinition) error {
	c, err := client.New(e.plane.Config, client.Options{})
	if err != nil {
		return err
	}
	return c.Patch(ctx, to, client.MergeFrom(from))
}

func withoutServing(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	return crd
}
