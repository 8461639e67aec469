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

// crdFiles are the definitions that the server serves, as github.com/openshift/api lays them out: those of a cluster
// without preview features. They are listed one by one because a folder holds several variants of one definition.
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

// definitions are the paths of the files.
func definitions(openshift string) []string {
	var paths []string
	for _, d := range crdFiles {
		for _, f := range d.files {
			paths = append(paths, filepath.Join(openshift, filepath.FromSlash(d.folder), "zz_generated.crd-manifests", f+".crd.yaml"))
		}
	}
	return paths
}

// Without hides kinds until the end of the test, as if nobody had ever defined them: those of the named definitions, such
// as "machines.machine.openshift.io", or every one that Kubernetes itself does not have when none is named.
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
		t.Fatalf("of %q, only %d are definitions", names, len(hidden))
	}
	t.Cleanup(func() {
		if err := e.serve(context.Background(), hidden); err != nil {
			t.Errorf("bringing kinds back: %v", err)
		}
	})
	if err := e.hide(t.Context(), hidden); err != nil {
		t.Fatalf("hiding kinds: %v", err)
	}
}

// hide is quick and can be taken back, unlike deleting a definition.
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

// await asks for the kinds until the answer for each is as wanted. It asks for all at once, as the server lets the first
// who asks for a kind wait a second.
func (e *Environment) await(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition, wanted func(error) bool) error {
	answers := make([]error, len(crds))
	var group sync.WaitGroup
	for i, crd := range crds {
		group.Go(func() {
			answers[i] = eventually(ctx, "the answer for "+crd.Name, func() bool { return wanted(e.ask(ctx, crd)) })
		})
	}
	group.Wait()
	return errors.Join(answers...)
}

// ask lists the objects of a kind for a client that knows nothing yet.
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

// eventually waits until it is done, for a while.
func eventually(ctx context.Context, what string, done func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
