package mustgather

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestRedact compares whole objects: fields that are not read are not in the folder, as their contents are unknown.
func TestRedact(t *testing.T) {
	for name, tt := range map[string]struct{ given, want string }{
		"a Secret keeps the names of its values": {
			`{kind: Secret, metadata: {name: s, labels: {a: b}, annotations: {copy: pass-annotation}, managedFields: [{manager: m}]}, data: {token: cGFzcw==}, stringData: {other: pass}, type: Opaque}`,
			`{kind: Secret, metadata: {name: s, labels: {a: b}}, data: {token: ""}, stringData: {other: ""}, type: Opaque}`,
		},
		"a Secret without values": {
			`{kind: Secret, metadata: {name: s, annotations: {copy: pass-annotation}}}`,
			`{kind: Secret, metadata: {name: s}}`,
		},
		"a Machine, without its providerSpec and providerStatus": {
			`{kind: Machine, metadata: {name: m}, spec: {providerID: aws:///i-1, providerSpec: {value: {userDataSecret: {name: x}, password: pass}}}, status: {phase: Running, providerStatus: {instanceId: i-1}}}`,
			`{kind: Machine, metadata: {name: m}, spec: {providerID: aws:///i-1}, status: {phase: Running}}`,
		},
		"a MachineSet, the same": {
			`{kind: MachineSet, metadata: {name: m}, spec: {replicas: 2, template: {spec: {providerID: x, providerSpec: {value: {password: pass}}}}}}`,
			`{kind: MachineSet, metadata: {name: m}, spec: {replicas: 2, template: {spec: {providerID: x}}}}`,
		},
		"a ControllerConfig, with what is read": {
			`{kind: ControllerConfig, metadata: {name: c}, spec: {kubeAPIServerServingCAData: Y2E=, imageRegistryBundleData: [], pullSecret: {name: pass}, infra: {}}, status: {x: pass}}`,
			`{kind: ControllerConfig, metadata: {name: c}, spec: {kubeAPIServerServingCAData: Y2E=, imageRegistryBundleData: [], infra: {}}}`,
		},
		"a MachineConfig, with the file of nodes and the command of the kubelet": {
			`
kind: MachineConfig
metadata: {name: m}
spec:
  kernelArguments: [pass]
  config:
    passwd: {users: [{passwordHash: pass}]}
    ignition: {version: 3.4.0, config: {merge: [pass]}}
    storage: {files: [{path: /root/.docker/config.json, contents: {source: "data:,a:%20pass"}}, {path: /etc/kubernetes/credential-providers/ecr-credential-provider.yaml, contents: {source: "data:,a:%201"}}, {path: /etc/kubernetes/credential-providers/gcr-credential-provider.yaml, contents: {source: pass}}, {path: /etc/kubernetes/credential-providers/other.yaml, contents: {source: "data:,a:%20pass"}}, {path: /etc/kubernetes/cloud.conf, mode: 420, contents: {source: "data:;base64,eyJ0ZW5hbnRJZCI6InQiLCJhYWRDbGllbnRTZWNyZXQiOiJwYXNzIiwidXNlTWFuYWdlZElkZW50aXR5RXh0ZW5zaW9uIjp0cnVlfQ=="}}, {path: /etc/kubernetes/cloud.conf, contents: {source: "data:;base64,eyJhYWRDbGllbnRTZWNyZXQiOiJwYXNzIn0="}}, pass], disks: [pass]}
    systemd:
      units:
      - {name: other.service, contents: pass}
      - name: kubelet.service
        contents: "[Unit]\nDescription=pass\n[Service]\nEnvironment=pass\nExecStart=kubelet \\\n  --v=2\nRestart=pass\n"
        dropins: [{name: a, contents: "[Service]\nEnvironment=HTTP_PROXY=pass\n"}, pass]
`,
			`
kind: MachineConfig
metadata: {name: m}
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: /etc/kubernetes/credential-providers/ecr-credential-provider.yaml, contents: {source: "data:,a:%201"}}, {path: /etc/kubernetes/cloud.conf, mode: 420, contents: {source: "data:;base64,eyJ0ZW5hbnRJZCI6InQiLCJ1c2VNYW5hZ2VkSWRlbnRpdHlFeHRlbnNpb24iOnRydWV9"}}]}
    systemd:
      units:
      - name: kubelet.service
        contents: "[Service]\nExecStart=kubelet \\\n  --v=2\n"
        dropins: [{name: a, contents: "[Service]\n"}, pass]
`,
		},
		"a Deployment, with the values of harmless variables": {
			`{kind: Deployment, metadata: {name: d, annotations: {kubectl.kubernetes.io/last-applied-configuration: pass, other: kept}}, spec: {template: {spec: {containers: [{name: c, env: [{name: ARGS, value: --v=2}, {name: MINE, value: pass}, {name: REF, valueFrom: {secretKeyRef: {name: s}}}, {name: HTTP_PROXY, value: "u:pass@proxy:3128"}]}], initContainers: [{name: i, env: [{name: MINE, value: pass}]}]}}}}`,
			`{kind: Deployment, metadata: {name: d, annotations: {other: kept}}, spec: {template: {spec: {containers: [{name: c, env: [{name: ARGS, value: --v=2}, {name: MINE, value: <masked>}, {name: REF, valueFrom: {secretKeyRef: {name: s}}}, {name: HTTP_PROXY, value: "****:****@proxy:3128"}]}], initContainers: [{name: i, env: [{name: MINE, value: <masked>}]}]}}}}`,
		},
		"a Pod, with what oc debug adds, without passwords in arguments": {
			`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, command: [run, --password, hunter2, "--token=hunter3", --verbose, x], args: [a]}], ephemeralContainers: [{name: d, env: [{name: MINE, value: pass}], args: ["-secret", "hunter4", "echo b"]}]}}`,
			`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, command: [run, --password, <masked>, "--token=<masked>", --verbose, x], args: [a]}], ephemeralContainers: [{name: d, env: [{name: MINE, value: <masked>}], args: ["-secret", <masked>, "echo b"]}]}}`,
		},
		"an Event of a program that shows its password": {
			`{kind: Event, metadata: {name: e}, reason: Failed, message: "login with password=hunter2 failed", note: "token: hunter3"}`,
			`{kind: Event, metadata: {name: e}, reason: Failed, message: "login with password=<masked> failed", note: "token: <masked>"}`,
		},
		"a Proxy, in its spec and its status": {
			`{kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: "http://u:pass@proxy:3128", httpsProxy: "u:p ss/pass@proxy:3128", noProxy: .example.com}, status: {httpProxy: "http://u:pass@proxy:3128"}}`,
			`{kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: "http://****:****@proxy:3128", httpsProxy: "****:****@proxy:3128", noProxy: .example.com}, status: {httpProxy: "http://****:****@proxy:3128"}}`,
		},
	} {
		var given, want map[string]any
		if err := yaml.UnmarshalStrict([]byte(tt.given), &given); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := yaml.UnmarshalStrict([]byte(tt.want), &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		u := &unstructured.Unstructured{Object: given}
		redactObject(u)
		if diff := cmp.Diff(want, u.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCredentialsOfProvidersAreMasked: a MachineConfig has their variables and arguments in the text of a file.
func TestCredentialsOfProvidersAreMasked(t *testing.T) {
	const head = "data:;base64,"
	redacted := func(text string) string {
		file := map[string]any{
			"path":     credentialProviders + "ecr-credential-provider.yaml",
			"contents": map[string]any{"source": head + base64.StdEncoding.EncodeToString([]byte(text))},
		}
		if !isReadFile(file) {
			return ""
		}
		source, _, _ := unstructured.NestedString(file, "contents", "source")
		kept, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(source, head))
		if err != nil {
			t.Fatal(err)
		}
		return string(kept)
	}
	const plain = "kind: CredentialProviderConfig\nproviders: [{name: a, args: [--v=2], env: [{name: AWS_PROFILE, value: nodes}]}]\n"
	if got := redacted(plain); got != plain {
		t.Errorf("a file without credentials: %s", got)
	}
	const with = "providers: [{name: a, args: [--token, hunter2, 'https://u:hunter3@proxy'], env: [{name: AWS_SECRET_ACCESS_KEY, value: hunter4}, {name: AWS_PROFILE, value: nodes}]}]\n"
	if got := redacted(with); strings.Contains(got, "hunter") || !strings.Contains(got, "nodes") {
		t.Errorf("credentials: %s", got)
	}
	if got := redacted("hunter5: ["); got != "" {
		t.Errorf("a file that is no YAML: %s", got)
	}
}
