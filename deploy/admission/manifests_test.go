package admission

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the manifests and fail")

// namespace is that of the operator in deploy.
const namespace = "openshift-windows-machine-config-operator"

// TestManifests: the manifests install what the operator looks for in the cluster.
func TestManifests(t *testing.T) {
	cloudPolicy, cloudBinding := CloudNodeManager()
	policy, binding := OperatorSecrets(namespace)
	instances, instancesBinding := CheckInstances(namespace)
	settings, settingsBinding := CheckSettings(namespace)
	for file, m := range map[string]struct {
		source, about string
		objects       []client.Object
	}{
		"cloud-node-manager.yaml":  {"admission.go", "The policy holds the cloud-node-manager of a Windows node on Azure to the Node of its name", []client.Object{cloudPolicy, cloudBinding}},
		"operator.yaml":            {"operator.go", "The policy refuses Secrets that the operator has no reason to write, whoever has its token", []client.Object{policy, binding}},
		"../warnings/inputs.yaml":  {"../admission/inputs.go", "The policies refuse windows-instances and windows-machine-config without effect. Nothing depends on it", []client.Object{instances, instancesBinding, settings, settingsBinding}},
		"../warnings/webhook.yaml": {"../admission/warnings.go", "The webhook warns about what an object will change on Windows nodes, and refuses nothing. Nothing depends on it", []client.Object{WarningWebhook(namespace)}},
	} {
		want := bytes.NewBufferString("# Generated from " + m.source +
			" by `go test ./deploy/admission -update`. " + m.about + ".\n")
		for i, o := range m.objects {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
			unstructured.RemoveNestedField(content, "status")
			text, err := yaml.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				want.WriteString("---\n")
			}
			want.Write(text)
		}
		if *update {
			if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s is written", file)
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), string(have)); diff != "" {
			t.Errorf("%s (-made of the code +file):\n%s", file, diff)
		}
	}
}
