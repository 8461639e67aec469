package prerequisites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle/reason"
	"wmco/controller/configure"
	"wmco/render/mirrors"
)

// kindReader lists objects by kind. A kind that it does not have is not served.
type kindReader struct {
	client.Reader
	objects map[string][]unstructured.Unstructured
	errs    map[string]error
}

func (r kindReader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list := into.(*unstructured.UnstructuredList)
	kind := strings.TrimSuffix(list.GetKind(), "List")
	all, served := r.objects[kind]
	if err := r.errs[kind]; err != nil {
		return err
	}
	if !served {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	if first, _ := strconv.Atoi(o.Continue); o.Limit > 0 {
		last := min(len(all), first+int(o.Limit))
		if last < len(all) {
			list.SetContinue(strconv.Itoa(last))
		}
		all = all[first:last]
	}
	for _, u := range all {
		if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			list.Items = append(list.Items, u)
		}
	}
	return nil
}

// clusterWith returns a cluster with objects, from YAML documents.
func clusterWith(t *testing.T, documents ...string) kindReader {
	t.Helper()
	r := kindReader{objects: map[string][]unstructured.Unstructured{}, errs: map[string]error{}}
	for _, text := range documents {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := json.Unmarshal(data, &u.Object); err != nil {
			t.Fatal(err)
		}
		r.objects[u.GetKind()] = append(r.objects[u.GetKind()], u)
	}
	return r
}

func TestWhatWindowsNodesIgnoreIsSaid(t *testing.T) {
	const pool = "{kind: MachineConfigPool, metadata: {name: worker, labels: {custom: workers}}}"
	for name, c := range map[string]struct {
		documents []string
		// reason is that of the condition; empty for none. message is a part of its message.
		reason, message string
		mode            mirrors.Mode
	}{
		"plain Kubernetes":                         {nil, "", "", mirrors.HostsFiles},
		"the policy of the release":                {[]string{"{kind: ClusterImagePolicy, metadata: {name: openshift}}"}, "", "", mirrors.HostsFiles},
		"a policy of the cluster":                  {[]string{"{kind: ClusterImagePolicy, metadata: {name: signed}}"}, reason.ClusterImagePolicyIgnored, "ClusterImagePolicy signed: containerd", mirrors.HostsFiles},
		"a policy that the gateway applies":        {[]string{"{kind: ClusterImagePolicy, metadata: {name: signed}}"}, "", "", mirrors.Exact},
		"a policy of a namespace, with a gateway":  {[]string{"{kind: ImagePolicy, metadata: {name: signed, namespace: shop}}"}, reason.ImagePolicyIgnored, "ImagePolicy shop/signed: nothing on Windows nodes knows", mirrors.Exact},
		"a policy of a namespace":                  {[]string{"{kind: ImagePolicy, metadata: {name: signed, namespace: shop}}"}, reason.ImagePolicyIgnored, "ImagePolicy shop/signed: nothing", mirrors.HostsFiles},
		"a credential provider":                    {[]string{"{kind: CRIOCredentialProviderConfig, metadata: {name: cluster}, spec: {matchImages: [a.example.com]}}"}, reason.CRIOCredentialProviderConfigIgnored, "CRIOCredentialProviderConfig cluster: ", mirrors.HostsFiles},
		"a credential provider for nothing":        {[]string{"{kind: CRIOCredentialProviderConfig, metadata: {name: cluster}, spec: {}}"}, "", "", mirrors.HostsFiles},
		"a KubeletConfig by the default label":     {[]string{`{kind: KubeletConfig, metadata: {name: pods}, spec: {machineConfigPoolSelector: {matchLabels: {pools.operator.machineconfiguration.openshift.io/worker: ""}}}}`}, reason.KubeletConfigIgnored, "KubeletConfig pods: ", mirrors.HostsFiles},
		"a KubeletConfig by a label of users":      {[]string{pool, "{kind: KubeletConfig, metadata: {name: pods}, spec: {machineConfigPoolSelector: {matchLabels: {custom: workers}}}}"}, reason.KubeletConfigIgnored, "KubeletConfig pods: ", mirrors.HostsFiles},
		"a KubeletConfig of another pool":          {[]string{pool, "{kind: KubeletConfig, metadata: {name: pods}, spec: {machineConfigPoolSelector: {matchLabels: {custom: masters}}}}"}, "", "", mirrors.HostsFiles},
		"a KubeletConfig of no pool":               {[]string{"{kind: KubeletConfig, metadata: {name: pods}, spec: {}}"}, "", "", mirrors.HostsFiles},
		"a ContainerRuntimeConfig":                 {[]string{pool, "{kind: ContainerRuntimeConfig, metadata: {name: size}, spec: {machineConfigPoolSelector: {matchExpressions: [{key: custom, operator: Exists}]}}}"}, reason.ContainerRuntimeConfigIgnored, "ContainerRuntimeConfig size: ", mirrors.HostsFiles},
		"a MachineConfig with files":               {[]string{"{kind: MachineConfig, metadata: {name: 50-mine, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {storage: {files: [{path: /etc/a}]}}}}"}, reason.MachineConfigFilesIgnored, "MachineConfig 50-mine: ", mirrors.HostsFiles},
		"a MachineConfig with units":               {[]string{"{kind: MachineConfig, metadata: {name: 50-mine, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {systemd: {units: [{name: a.service}]}}}}"}, reason.MachineConfigFilesIgnored, "MachineConfig 50-mine: ", mirrors.HostsFiles},
		"a MachineConfig with keys alone":          {[]string{"{kind: MachineConfig, metadata: {name: 99-worker-ssh, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {passwd: {}}}}"}, "", "", mirrors.HostsFiles},
		"a MachineConfig of the control plane":     {[]string{"{kind: MachineConfig, metadata: {name: 50-mine, labels: {machineconfiguration.openshift.io/role: master}}, spec: {config: {storage: {files: [{path: /etc/a}]}}}}"}, "", "", mirrors.HostsFiles},
		"a MachineConfig of the operator of nodes": {[]string{"{kind: MachineConfig, metadata: {name: 00-worker, annotations: {machineconfiguration.openshift.io/generated-by-controller-version: v1}, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {storage: {files: [{path: /etc/a}]}}}}"}, "", "", mirrors.HostsFiles},
		"a disruption policy":                      {[]string{"{kind: MachineConfiguration, metadata: {name: cluster}, spec: {nodeDisruptionPolicy: {files: [{path: /etc/a}]}}}"}, reason.NodeDisruptionPolicyIgnored, "MachineConfiguration cluster: ", mirrors.HostsFiles},
		"no disruption policy":                     {[]string{"{kind: MachineConfiguration, metadata: {name: cluster}, spec: {nodeDisruptionPolicy: {files: []}}}"}, "", "", mirrors.HostsFiles},
		"a mirror set that forbids the source":     {[]string{"{kind: ImageDigestMirrorSet, metadata: {name: m}, spec: {imageDigestMirrors: [{source: a.example.com}, {source: b.example.com, mirrorSourcePolicy: NeverContactSource}]}}"}, reason.ForeignLayersFetched, "ImageDigestMirrorSet m: containerd downloads", mirrors.HostsFiles},
		"a mirror set that allows the source":      {[]string{"{kind: ImageTagMirrorSet, metadata: {name: m}, spec: {imageTagMirrors: [{source: a.example.com, mirrorSourcePolicy: AllowContactingSource}]}}"}, "", "", mirrors.HostsFiles},
		"two kinds":                                {[]string{"{kind: ImagePolicy, metadata: {name: b, namespace: shop}}", "{kind: ImagePolicy, metadata: {name: a, namespace: shop}}", "{kind: ClusterImagePolicy, metadata: {name: signed}}"}, reason.ClusterImagePolicyIgnored, "; ImagePolicy shop/a, shop/b: ", mirrors.HostsFiles},
	} {
		got, err := ignoredCondition(t.Context(), clusterWith(t, c.documents...), c.mode)
		switch {
		case err != nil || got.Type != NodeSettingsFollowed:
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.reason == "" && got.Status != metav1.ConditionTrue:
			t.Errorf("%s: %+v", name, got)
		case c.reason != "" && (got.Status != metav1.ConditionFalse || got.Reason != c.reason || !strings.Contains(got.Message, c.message)):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAKindThatMayNotBeListedKeepsNothingUnsaid of the others; an API server that does not answer is no answer.
func TestAKindThatMayNotBeListedKeepsNothingUnsaid(t *testing.T) {
	r := clusterWith(t, "{kind: ImagePolicy, metadata: {name: signed, namespace: shop}}")
	r.errs["ClusterImagePolicy"] = apierrors.NewForbidden(schema.GroupResource{Resource: "clusterimagepolicies"}, "", errors.New("no rule"))
	if got, err := ignoredCondition(t.Context(), r, mirrors.HostsFiles); err != nil || got.Reason != reason.ImagePolicyIgnored {
		t.Errorf("%+v, %v", got, err)
	}
	r.errs["ClusterImagePolicy"] = errors.New("no route")
	if _, err := ignoredCondition(t.Context(), r, mirrors.HostsFiles); err == nil {
		t.Error("the API server did not answer, and nothing reports it")
	}
}

// TestAKindThatCannotBeReadHoldsUpNothing: what was known stays, and it is looked for again with the next call.
func TestAKindThatCannotBeReadHoldsUpNothing(t *testing.T) {
	r := kindReader{errs: map[string]error{"KubeletConfig": errors.New("the conversion webhook does not answer")}}
	c := Cluster{Checks: &configure.Checks{Live: r, Now: time.Now}, Log: logr.Discard()}
	if c.lookForIgnored(t.Context(), mirrors.HostsFiles); c.ignored.Type != "" || !c.ignoredAt.IsZero() {
		t.Errorf("%+v", c.ignored)
	}
	delete(r.errs, "KubeletConfig")
	if c.lookForIgnored(t.Context(), mirrors.HostsFiles); c.ignored.Type != NodeSettingsFollowed || c.ignoredAt.IsZero() {
		t.Errorf("%+v", c.ignored)
	}
}

// TestWhatIsIgnoredIsListedInParts: whoever may make ImagePolicies in a namespace makes as many as they like.
func TestWhatIsIgnoredIsListedInParts(t *testing.T) {
	r := clusterWith(t)
	for i := range 2*ignoredAtATime + 1 {
		u := unstructured.Unstructured{Object: map[string]any{"kind": "ImagePolicy"}}
		u.SetName(fmt.Sprintf("policy-%03d", i))
		r.objects["ImagePolicy"] = append(r.objects["ImagePolicy"], u)
	}
	c, err := ignoredCondition(t.Context(), bounded{r, t}, mirrors.HostsFiles)
	if want := "ImagePolicy policy-000, policy-001, policy-002, and 98 more"; err != nil || !strings.Contains(c.Message, want) {
		t.Errorf("%v: %q, want %q", err, c.Message, want)
	}
}

// bounded has no list of more objects than are in memory at a time.
type bounded struct {
	kindReader
	t *testing.T
}

func (b bounded) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := b.kindReader.List(ctx, into, options...)
	if n := len(into.(*unstructured.UnstructuredList).Items); n > ignoredAtATime {
		b.t.Errorf("%d objects at a time", n)
	}
	return err
}
