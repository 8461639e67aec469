package gather

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/ignored"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/record"
	"wmco/render/mirrors"
)

// ignoredFindings gathers from a folder with the files, and returns the findings about what Windows nodes ignore.
func ignoredFindings(t *testing.T, o Options, files map[string]string) []string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Gather(t.Context(), objects.NewPathsReader([]string{folder}, nil), o)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range r.Findings {
		isIgnored := slices.ContainsFunc(ignored.Kinds(mirrors.HostsFiles), func(k ignored.Kind) bool {
			return k.Reason == f.Reason || k.Kind == f.Object.Kind && k.Kind != "MachineConfig"
		})
		if isIgnored {
			list = append(list, strings.Join([]string{string(f.Severity), f.Reason, f.Object.Kind, strings.TrimPrefix(f.Object.Namespace+"/"+f.Object.Name, "/")}, " "))
		}
		if isIgnored && (f.Message == "" || f.Fix == "" || f.Object.Source == "") {
			t.Errorf("a finding lacks its message, fix or file: %+v", f)
		}
	}
	return list
}

const policyOfAShop = "{apiVersion: config.openshift.io/v1, kind: ImagePolicy, metadata: {name: signed, namespace: shop}}"

// TestWhatWindowsNodesIgnoreIsAFinding, for each kind, in files as people write them and in a must-gather.
func TestWhatWindowsNodesIgnoreIsAFinding(t *testing.T) {
	const mcfg = "machineconfiguration.openshift.io"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"cluster image policy":   {map[string]string{"a.yaml": "{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: signed}}"}, []string{"warning ClusterImagePolicyIgnored ClusterImagePolicy signed"}},
		"that of the release":    {map[string]string{"a.yaml": "{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: openshift}}"}, nil},
		"image policy":           {map[string]string{"a.yaml": policyOfAShop}, []string{"warning ImagePolicyIgnored ImagePolicy shop/signed"}},
		"image policy of Flux":   {map[string]string{"a.yaml": "{apiVersion: image.toolkit.fluxcd.io/v1, kind: ImagePolicy, metadata: {name: podinfo, namespace: shop}}"}, nil},
		"credential provider":    {map[string]string{"a.yaml": "{apiVersion: config.openshift.io/v1alpha1, kind: CRIOCredentialProviderConfig, metadata: {name: cluster}, spec: {matchImages: [a.example.com]}}"}, []string{"warning CRIOCredentialProviderConfigIgnored CRIOCredentialProviderConfig cluster"}},
		"kubelet, default label": {map[string]string{"a.yaml": "{apiVersion: " + mcfg + `/v1, kind: KubeletConfig, metadata: {name: pods}, spec: {machineConfigPoolSelector: {matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}}}}`}, []string{"info KubeletConfigIgnored KubeletConfig pods"}},
		"kubelet, label of the pool in a must-gather": {map[string]string{
			"cluster-scoped-resources/" + mcfg + "/machineconfigpools/worker.yaml": "{apiVersion: " + mcfg + "/v1, kind: MachineConfigPool, metadata: {name: worker, labels: {custom: workers}}}",
			"cluster-scoped-resources/" + mcfg + "/kubeletconfigs/pods.yaml":       "{apiVersion: " + mcfg + "/v1, kind: KubeletConfig, metadata: {name: pods}, spec: {machineConfigPoolSelector: {matchLabels: {custom: workers}}}}",
			"cluster-scoped-resources/" + mcfg + "/kubeletconfigs/infra.yaml":      "{apiVersion: " + mcfg + "/v1, kind: KubeletConfig, metadata: {name: infra}, spec: {machineConfigPoolSelector: {matchLabels: {custom: infra}}}}",
		}, []string{"info KubeletConfigIgnored KubeletConfig pods"}},
		"images of Linux workers": {map[string]string{"a.yaml": "{apiVersion: " + mcfg + "/v1, kind: PinnedImageSet, metadata: {name: release, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {pinnedImages: [{name: a}]}}"}, []string{"info PinnedImageSetIgnored PinnedImageSet release"}},
		"images of masters":       {map[string]string{"a.yaml": "{apiVersion: " + mcfg + "/v1, kind: PinnedImageSet, metadata: {name: release, labels: {machineconfiguration.openshift.io/role: master}}, spec: {pinnedImages: [{name: a}]}}"}, nil},
		"container runtime":       {map[string]string{"a.yaml": "{apiVersion: " + mcfg + `/v1, kind: ContainerRuntimeConfig, metadata: {name: size}, spec: {machineConfigPoolSelector: {matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}}}}`}, []string{"info ContainerRuntimeConfigIgnored ContainerRuntimeConfig size"}},
		"machine config of workers": {map[string]string{"a.yaml": "{apiVersion: " + mcfg + "/v1, kind: MachineConfig, metadata: {name: 50-mine, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {storage: {files: [{path: /etc/a}]}}}}"},
			[]string{"info MachineConfigFilesIgnored MachineConfig 50-mine"}},
		"machine config of masters": {map[string]string{"a.yaml": "{apiVersion: " + mcfg + "/v1, kind: MachineConfig, metadata: {name: 50-mine, labels: {machineconfiguration.openshift.io/role: master}}, spec: {config: {storage: {files: [{path: /etc/a}]}}}}"}, nil},
		"rendered machine config":   {map[string]string{"a.yaml": "{apiVersion: " + mcfg + "/v1, kind: MachineConfig, metadata: {name: rendered-worker-a, annotations: {machineconfiguration.openshift.io/generated-by-controller-version: v1}}, spec: {config: {ignition: {version: 3.4.0}, storage: {files: [{path: /etc/a}]}}}}"}, nil},
		"disruption policy":         {map[string]string{"a.yaml": "{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, metadata: {name: cluster}, spec: {nodeDisruptionPolicy: {files: [{path: /etc/a}]}}}"}, []string{"info NodeDisruptionPolicyIgnored MachineConfiguration cluster"}},
		"mirror sets": {map[string]string{
			"a.yaml": "{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: d}, spec: {imageDigestMirrors: [{source: a.example.com, mirrors: [m.example.com], mirrorSourcePolicy: NeverContactSource}]}}",
			"b.yaml": "{apiVersion: config.openshift.io/v1, kind: ImageTagMirrorSet, metadata: {name: t}, spec: {imageTagMirrors: [{source: b.example.com, mirrors: [m.example.com], mirrorSourcePolicy: NeverContactSource}]}}",
			"c.yaml": "{apiVersion: config.openshift.io/v1, kind: ImageTagMirrorSet, metadata: {name: open}, spec: {imageTagMirrors: [{source: c.example.com, mirrors: [m.example.com]}]}}",
		}, []string{"info ForeignLayersFetched ImageDigestMirrorSet d", "info ForeignLayersFetched ImageTagMirrorSet t"}},
		"another version, and a damaged object, refuse nothing": {map[string]string{
			"a.yaml": "{apiVersion: config.openshift.io/v1alpha1, kind: ImagePolicy, metadata: {name: signed, namespace: shop}}",
			"b.yaml": "apiVersion: " + mcfg + "/v1\nkind: KubeletConfig\nmetadata: {name: pods}\nspec: [\n",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ignoredFindings(t, Options{}, c.files)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTheOperatorSaysItInItsCondition alone: it does not read these objects with every change of the inputs.
func TestTheOperatorSaysItInItsCondition(t *testing.T) {
	if got := ignoredFindings(t, Options{Records: &record.Set{}}, map[string]string{"a.yaml": policyOfAShop}); got != nil {
		t.Errorf("%v", got)
	}
}

// TestAnotherMachineConfigIsNotTakenForTheRenderedOne, also where it is newer.
func TestAnotherMachineConfigIsNotTakenForTheRenderedOne(t *testing.T) {
	config := func(name, created string) objects.Object {
		return object(groupMachineConfig, "MachineConfig", "", name, `{"metadata":{"name":"`+name+`","creationTimestamp":"`+created+`","labels":{"machineconfiguration.openshift.io/role":"worker"}},"spec":{"config":{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/a"}]}}}}`)
	}
	r := gatherFrom(t, Options{}, config("rendered-worker-a", "2026-01-01T00:00:00Z"), config("50-mine", "2026-02-01T00:00:00Z"))
	for _, o := range r.Cluster.Origins {
		if o.Name == "50-mine" {
			t.Error("a MachineConfig that is not rendered is used")
		}
	}
}
