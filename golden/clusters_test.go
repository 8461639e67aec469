package golden

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// openshiftKinds says where github.com/openshift/api keeps the schema of a kind: folder and plural.
var openshiftKinds = map[string]struct{ folder, plural string }{
	"config.openshift.io/v1 APIServer":                        {"config/v1", "apiservers"},
	"config.openshift.io/v1 ClusterImagePolicy":               {"config/v1", "clusterimagepolicies"},
	"config.openshift.io/v1 ClusterOperator":                  {"config/v1", "clusteroperators"},
	"config.openshift.io/v1 ClusterVersion":                   {"config/v1", "clusterversions"},
	"config.openshift.io/v1 Image":                            {"config/v1", "images"},
	"config.openshift.io/v1 ImageDigestMirrorSet":             {"config/v1", "imagedigestmirrorsets"},
	"config.openshift.io/v1 ImageTagMirrorSet":                {"config/v1", "imagetagmirrorsets"},
	"config.openshift.io/v1 Infrastructure":                   {"config/v1", "infrastructures"},
	"config.openshift.io/v1 Network":                          {"config/v1", "networks"},
	"config.openshift.io/v1 Proxy":                            {"config/v1", "proxies"},
	"machine.openshift.io/v1beta1 Machine":                    {"machine/v1beta1", "machines"},
	"machine.openshift.io/v1beta1 MachineSet":                 {"machine/v1beta1", "machinesets"},
	"machineconfiguration.openshift.io/v1 ControllerConfig":   {"machineconfiguration/v1", "controllerconfigs"},
	"machineconfiguration.openshift.io/v1 MachineConfig":      {"machineconfiguration/v1", "machineconfigs"},
	"machineconfiguration.openshift.io/v1 PinnedImageSet":     {"machineconfiguration/v1", "pinnedimagesets"},
	"machineconfiguration.openshift.io/v1 MachineConfigPool":  {"machineconfiguration/v1", "machineconfigpools"},
	"operator.openshift.io/v1 Network":                        {"operator/v1", "networks"},
	"operator.openshift.io/v1alpha1 ImageContentSourcePolicy": {"operator/v1alpha1", "imagecontentsourcepolicies"},
}

// kubernetesKinds are decoded strictly into their own types.
var kubernetesKinds = map[string]any{
	"apps/v1 Deployment":             appsv1.Deployment{},
	"storage.k8s.io/v1 StorageClass": storagev1.StorageClass{},
	"v1 ConfigMap":                   corev1.ConfigMap{},
	"v1 Event":                       corev1.Event{},
	"v1 Namespace":                   corev1.Namespace{},
	"v1 Node":                        corev1.Node{},
	"v1 Pod":                         corev1.Pod{},
	"v1 Secret":                      corev1.Secret{},
}

// providerKinds are the parts of Machines for their cloud, which no schema covers.
var providerKinds = map[string]any{
	"AWSMachineProviderConfig":     machinev1beta1.AWSMachineProviderConfig{},
	"AzureMachineProviderSpec":     machinev1beta1.AzureMachineProviderSpec{},
	"GCPMachineProviderSpec":       machinev1beta1.GCPMachineProviderSpec{},
	"NutanixMachineProviderConfig": machinev1.NutanixMachineProviderConfig{},
	"VSphereMachineProviderSpec":   machinev1beta1.VSphereMachineProviderSpec{},
}

// documents splits a YAML stream.
var documents = regexp.MustCompile(`(?m)^---\n`)

// TestClusterObjects checks every example object against the types of a cluster of that version.
func TestClusterObjects(t *testing.T) {
	checkObjects(t, clusterObjects(t, "clusters"))
}

func checkObjects(t *testing.T, objects []clusterObject) {
	t.Helper()
	schemas := schemas{root: moduleDir(t, "github.com/openshift/api"), loaded: map[string][]crd{}}
	for _, o := range objects {
		id := o.GetAPIVersion() + " " + o.GetKind()
		if empty, ok := kubernetesKinds[id]; ok {
			if err := decodeStrict(empty, o.Object); err != nil {
				t.Errorf("%s: %v", o, err)
			}
			continue
		}
		crds := schemas.of(t, id)
		if len(crds) == 0 {
			t.Errorf("%s: no schema known for %s", o, id)
		}
		for _, c := range crds {
			for _, finding := range c.findings(t.Context(), o.Object) {
				t.Errorf("%s: %s: %s", o, c.file, finding)
			}
		}
	}
}

// TestMachineProviders decodes the part of Machines and MachineSets that their schemas do not cover.
func TestMachineProviders(t *testing.T) {
	checkProviders(t, clusterObjects(t, "clusters"))
}

func checkProviders(t *testing.T, objects []clusterObject) {
	t.Helper()
	paths := map[string][]string{
		"Machine":    {"spec", "providerSpec", "value"},
		"MachineSet": {"spec", "template", "spec", "providerSpec", "value"},
	}
	for _, o := range objects {
		path, ok := paths[o.GetKind()]
		if !ok {
			continue
		}
		value, _, _ := unstructured.NestedMap(o.Object, path...)
		empty, ok := providerKinds[fmt.Sprint(value["kind"])]
		if !ok {
			t.Errorf("%s: provider kind %v is not known", o, value["kind"])
			continue
		}
		if err := decodeStrict(empty, value); err != nil {
			t.Errorf("%s: provider: %v", o, err)
		}
	}
}

// TestMustGatherIsTheAWSCluster: the must-gather has the objects of the AWS cluster.
func TestMustGatherIsTheAWSCluster(t *testing.T) {
	want := map[string]clusterObject{}
	for _, dir := range []string{"common", "aws"} {
		for _, o := range clusterObjects(t, filepath.Join("clusters", dir)) {
			want[o.id()] = o
		}
	}
	seen := map[string]bool{}
	for _, o := range clusterObjects(t, filepath.Join("clusters", "mustgather")) {
		if o.GetKind() == "Secret" {
			t.Errorf("%s: the example must-gather has no Secrets", o)
		}
		seen[o.id()] = true
		if w, ok := want[o.id()]; ok && !reflect.DeepEqual(w.Object, o.Object) {
			t.Errorf("%s: differs from %s", o, w)
		}
	}
	for id, o := range want {
		if !seen[id] && o.GetKind() != "Secret" {
			t.Errorf("%s: not in the must-gather", o)
		}
	}
}

// TestClusterCertificates parses every certificate, plain and in base64.
func TestClusterCertificates(t *testing.T) {
	count := 0
	for _, o := range clusterObjects(t, "clusters") {
		walkStrings(o.Object, func(text string) {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				text = string(plain)
			}
			for rest := []byte(text); strings.Contains(string(rest), "BEGIN CERTIFICATE"); count++ {
				var block *pem.Block
				if block, rest = pem.Decode(rest); block == nil {
					t.Errorf("%s: not PEM: %.80q", o, text)
					return
				}
				if _, err := x509.ParseCertificate(block.Bytes); err != nil {
					t.Errorf("%s: %v", o, err)
				}
			}
		})
	}
	if count < 20 {
		t.Errorf("found %d certificates, want at least 20", count)
	}
}

type clusterObject struct {
	unstructured.Unstructured
	file string
}

func (o clusterObject) id() string {
	return strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
}

func (o clusterObject) String() string { return o.file + ": " + o.GetKind() + " " + o.GetName() }

// clusterObjects reads all objects below a folder, including those in lists. Files that are not YAML are not objects.
func clusterObjects(t *testing.T, dir string) []clusterObject {
	t.Helper()
	var objects []clusterObject
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range documents.Split(string(text), -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			o := clusterObject{file: path}
			if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
				return fmt.Errorf("reading %s: %w", path, err)
			}
			if !o.IsList() {
				objects = append(objects, o)
				continue
			}
			if err := o.EachListItem(func(item runtime.Object) error {
				objects = append(objects, clusterObject{*item.(*unstructured.Unstructured), path})
				return nil
			}); err != nil {
				return fmt.Errorf("reading %s: %w", path, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		t.Fatalf("no objects below %s", dir)
	}
	return objects
}
