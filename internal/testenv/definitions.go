package testenv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crdFiles are the definitions that the server serves, with their paths in github.com/openshift/api: those of a cluster without
// preview features. A folder has several variants of a definition, so they are listed one by one.
var crdFiles = []struct {
	folder string
	files  []string
}{
	{"config/v1", []string{
		"0000_00_cluster-version-operator_01_clusteroperators",
		"0000_00_cluster-version-operator_01_clusterversions-Default",
		"0000_03_config-operator_01_proxies",
		"0000_10_config-operator_01_apiservers-Default",
		"0000_10_config-operator_01_imagedigestmirrorsets",
		"0000_10_config-operator_01_images-Default",
		"0000_10_config-operator_01_imagetagmirrorsets",
		"0000_10_config-operator_01_infrastructures-Default",
		"0000_10_config-operator_01_networks",
	}},
	{"machine/v1beta1", []string{
		"0000_10_machine-api_01_machines-Default",
		"0000_10_machine-api_01_machinesets-Default",
	}},
	{"machineconfiguration/v1", []string{
		"0000_80_machine-config_01_controllerconfigs-Default",
		"0000_80_machine-config_01_machineconfigpools",
		"0000_80_machine-config_01_machineconfigs",
	}},
	{"operator/v1", []string{"0000_70_network_01_networks"}},
	{"operator/v1alpha1", []string{"0000_10_config-operator_01_imagecontentsourcepolicies"}},
}

// definitions returns the paths of the files.
func definitions(openshift string) []string {
	var paths []string
	for _, d := range crdFiles {
		for _, f := range d.files {
			paths = append(paths, filepath.Join(openshift, filepath.FromSlash(d.folder), "zz_generated.crd-manifests", f+".crd.yaml"))
		}
	}
	return paths
}

// Without hides kinds until the end of the test, as if they had not been defined. The names are those of definitions, such as
// "machines.machine.openshift.io". Without names it hides every kind that is not part of Kubernetes.
func (e *Environment) Without(t testing.TB, names ...string) {
	t.Helper()
	e.Config(t)
	var hidden []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range e.server.CRDs {
		if len(names) == 0 || slices.Contains(names, crd.Name) {
			hidden = append(hidden, crd)
		}
	}
	if len(names) > 0 && len(hidden) != len(names) {
		t.Fatalf("only %d of %q are definitions", len(hidden), names)
	}
	t.Cleanup(func() {
		if err := e.serve(context.Background(), hidden); err != nil {
			t.Errorf("serving kinds again: %v", err)
		}
	})
	if err := e.hide(t.Context(), hidden); err != nil {
		t.Fatalf("hiding kinds: %v", err)
	}
}

// hide is fast and can be undone. Deleting a definition is neither.
func (e *Environment) hide(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := e.patch(ctx, crd, unserved(crd)); err != nil {
			return err
		}
	}
	return e.await(ctx, crds, meta.IsNoMatchError)
}

func (e *Environment) serve(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := e.patch(ctx, unserved(crd), crd.DeepCopy()); err != nil {
			return err
		}
	}
	return e.await(ctx, crds, func(err error) bool { return err == nil })
}

func (e *Environment) patch(ctx context.Context, from, to *apiextensionsv1.CustomResourceDefinition) error {
	c, err := client.New(e.server.Config, client.Options{})
	if err != nil {
		return err
	}
	return c.Patch(ctx, to, client.MergeFrom(from))
}

func unserved(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	return crd
}

// await lists each kind until the result is as wanted. It lists them in parallel, as the first request for a kind takes a
// second.
func (e *Environment) await(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition, wanted func(error) bool) error {
	answers := make([]error, len(crds))
	var group sync.WaitGroup
	for i, crd := range crds {
		group.Go(func() {
			answers[i] = Eventually(ctx, "the answer for "+crd.Name, func() bool { return wanted(e.ask(ctx, crd)) })
		})
	}
	group.Wait()
	return errors.Join(answers...)
}

// ask lists the objects of a kind with a new client.
func (e *Environment) ask(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	c, err := client.New(e.server.Config, client.Options{})
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	list.SetKind(crd.Spec.Names.ListKind)
	return c.List(ctx, list)
}

// Eventually waits until done returns true.
func Eventually(ctx context.Context, what string, done func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
