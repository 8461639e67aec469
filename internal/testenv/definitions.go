package testenv

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// crdFiles are the definitions that the server serves, as github.com/openshift/api lays them out: those of a cluster
// without preview features. They are listed one by one because a folder holds several variants of one definition.
var crdFiles = []struct {
	folder string
	files  []string
}{
	{"config/v1", []string{
		"0000_00_cluster-version-operator_01_clusterversions-Default",
		"0000_03_config-operator_01_proxies",
		"0000_10_config-operator_01_apiservers-Default",
		"0000_10_config-operator_01_imagedigestmirrorsets",
		"0000_10_config-operator_01_images",
		"0000_10_config-operator_01_imagetagmirrorsets",
		"0000_10_config-operator_01_infrastructures-Default",
		"0000_10_config-operator_01_networks-Default",
	}},
	{"machine/v1beta1", []string{
		"0000_10_machine-api_01_machines-Default",
		"0000_10_machine-api_01_machinesets-Default",
	}},
	{"machineconfiguration/v1", []string{
		"0000_80_machine-config_01_controllerconfigs-Default",
		"0000_80_machine-config_01_machineconfigpools-SelfManagedHA",
		"0000_80_machine-config_01_machineconfigs",
	}},
	{"operator/v1", []string{"0000_70_network_01_networks-Default"}},
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

// Without takes kinds away until the end of the test, with all their objects: those of the named definitions, such as
// "machines.machine.openshift.io", or every one that Kubernetes itself does not have when none is named.
func (e *Environment) Without(t testing.TB, names ...string) {
	t.Helper()
	c := e.Client(t)
	var gone []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range e.crds {
		if len(names) == 0 || slices.Contains(names, crd.Name) {
			gone = append(gone, crd.DeepCopy())
		}
	}
	if len(names) > 0 && len(gone) != len(names) {
		t.Fatalf("of %q, only %d are definitions", names, len(gone))
	}
	t.Cleanup(func() { e.serve(t, gone) })
	for _, crd := range gone {
		if err := c.Delete(t.Context(), crd); err != nil {
			t.Fatalf("deleting definition %s: %v", crd.Name, err)
		}
	}
	for _, crd := range gone {
		eventually(t, "no definition "+crd.Name, func() bool {
			return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{}))
		})
	}
}

// serve brings definitions back.
func (e *Environment) serve(t testing.TB, crds []*apiextensionsv1.CustomResourceDefinition) {
	for _, crd := range crds {
		crd.ResourceVersion = ""
	}
	if _, err := envtest.InstallCRDs(e.server.Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: patience}); err != nil {
		t.Errorf("bringing definitions back: %v", err)
	}
}

// eventually waits until the server says so.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
