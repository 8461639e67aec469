package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crdFiles are the definitions that the server serves, with their paths in github.com/openshift/api: those of a cluster
// without preview features. A folder has several variants of a definition, so they are listed one by one.
var crdFiles = []struct {
	folder string
	files  []string
}{
	{"config/v1", []string{
		"0000_00_cluster-version-operator_01_clusteroperators",
		"0000_00_cluster-version-operator_01_clusterversions-Default",
		"0000_03_config-operator_01_proxies",
		"0000_10_config-operator_01_apiservers-Default",
		"0000_10_config-operator_01_clusterimagepolicies-Default",
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
		"0000_80_machine-config_01_pinnedimagesets",
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

// Await lists each kind until the result is as wanted. It lists them in parallel, as the first request for a kind takes
// a second.
func (c *ControlPlane) Await(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition, wanted func(error) bool) error {
	answers := make([]error, len(crds))
	var group sync.WaitGroup
	for i, crd := range crds {
		group.Go(func() {
			answers[i] = c.await(ctx, crd, wanted)
		})
	}
	group.Wait()
	return errors.Join(answers...)
}

func (c *ControlPlane) await(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, wanted func(error) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		return wanted(c.ask(ctx, crd)), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the answer for %s: %w", crd.Name, err)
	}
	return nil
}

// ask lists the objects of a kind with a new client.
func (c *ControlPlane) ask(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	fresh, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	list.SetKind(crd.Spec.Names.ListKind)
	return fresh.List(ctx, list)
}
