package gather

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
)

const (
	infraOnAWS    = `{"status":{"apiServerInternalURI":"https://api-int.demo.example.com:6443","infrastructureName":"demo","platformStatus":{"type":"AWS","aws":{"region":"eu-central-1"}}}}`
	demoNetwork   = `{"spec":{"networkType":"OVNKubernetes","serviceNetwork":["172.30.0.0/16"],"clusterNetwork":[{"cidr":"10.128.0.0/14"}]}}`
	specOnlyProxy = `{"spec":{"httpsProxy":"http://p:1","noProxy":".corp.example.com,10.0.0.0/16"}}`
)

// givenSet is a reader of one set.
type givenSet objects.Set

func (s givenSet) Read(context.Context, []objects.Want) (objects.Set, error) {
	return objects.Set(s), nil
}

func gatherSet(t *testing.T, o Options, set objects.Set) Result {
	t.Helper()
	r, err := Gather(t.Context(), givenSet(set), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inFile is an object of a file.
func inFile(o objects.Object) objects.Object {
	o.Source, o.Line = "proxy.yaml", 1
	return o
}

func installConfigOf(t *testing.T, text string) objects.Object {
	t.Helper()
	data, err := json.Marshal(map[string]any{"data": map[string]string{"install-config": text}})
	if err != nil {
		t.Fatal(err)
	}
	p := installConfigPlace()
	return object(p.group, p.kind, p.namespace, p.name, string(data))
}

// A Proxy as it is kept in git has a spec alone. Nodes get the proxy with the list that the network operator makes, or the inputs are
// refused; they are never shown without a proxy.
func TestAProxyWithoutStatusIsComputed(t *testing.T) {
	infra, network := object(groupConfig, "Infrastructure", "", clusterName, infraOnAWS), object(groupConfig, "Network", "", clusterName, demoNetwork)
	proxy := inFile(object(groupConfig, "Proxy", "", clusterName, specOnlyProxy))
	config := installConfigOf(t, "networking:\n  machineNetwork:\n  - cidr: 10.0.0.0/16\n  - cidr: 0.0.0.0/0\n")
	earlier := object(groupConfig, "Proxy", "", clusterName, `{"spec":{"noProxy":".old.example.com"},"status":{"noProxy":".old.example.com,10.9.0.0/16,.svc"}}`)
	const system = ",.eu-central-1.compute.internal,.svc,10.0.0.0/16,10.128.0.0/14,127.0.0.1,169.254.169.254,172.30.0.0/16,api-int.demo.example.com,localhost"
	for name, c := range map[string]struct {
		objects  []objects.Object
		replaced []objects.Object
		noProxy  string
		finding  string
	}{
		"from the install config":          {[]objects.Object{infra, network, proxy, config}, nil, ".cluster.local,.corp.example.com" + system, "info ProxyStatusPredicted status"},
		"from the object that it replaces": {[]objects.Object{infra, network, proxy}, []objects.Object{earlier}, ".cluster.local,.corp.example.com" + strings.Replace(system, "10.128.0.0/14,", "10.128.0.0/14,10.9.0.0/16,", 1), "info ProxyStatusPredicted status"},
		"without machine networks":         {[]objects.Object{infra, network, proxy}, nil, "", "error ProxyWithoutStatus status"},
		"without a pod network":            {[]objects.Object{infra, proxy, config}, nil, "", "error ProxyWithoutStatus status"},
		"for every address":                {[]objects.Object{inFile(object(groupConfig, "Proxy", "", clusterName, `{"spec":{"httpProxy":"http://p:1","noProxy":"*"}}`))}, nil, "*", "info ProxyStatusPredicted status"},
	} {
		r := gatherSet(t, Options{}, objects.Set{Objects: c.objects, Replaced: c.replaced})
		if got := r.Cluster.Proxy; got.NoProxy != c.noProxy || got.IsZero() {
			t.Errorf("%s: noProxy %s, want %s", name, got.NoProxy, c.noProxy)
		}
		if got := reasons(r.Findings); !slices.Contains(got, c.finding) {
			t.Errorf("%s: findings %v, want %s", name, got, c.finding)
		}
	}
}

// In a cluster the status is what the network operator has set, and that it has set none is not ours to change.
func TestAProxyOfTheClusterWithoutStatusIsAWarning(t *testing.T) {
	r := gatherFrom(t, Options{Complete: true}, object(groupConfig, "Proxy", "", clusterName, specOnlyProxy))
	if got := reasons(r.Findings); !slices.Contains(got, "warning "+reason.ProxyWithoutStatus+" status") || !r.Cluster.Proxy.IsZero() {
		t.Errorf("findings %v", got)
	}
}

// On clouds Infrastructure has no machine networks, which the hybrid overlay must not overlap.
func TestTheNetworksOfTheInstallerAreKnown(t *testing.T) {
	operator := object("operator.openshift.io", "Network", "", clusterName, `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14"}]}}}}}`)
	config := installConfigOf(t, "networking:\n  machineNetwork:\n  - cidr: 10.0.0.0/16\n  - cidr: 0.0.0.0/0\n")
	for want, list := range map[string][]objects.Object{"10.0.0.0/16": {operator, config}, "": {operator}} {
		if got := strings.Join(gatherSet(t, Options{}, objects.Set{Objects: list}).Cluster.Network.InstalledNetworks, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Who may not read the install config of a live cluster can preview it nevertheless.
func TestTheInstallConfigMayBeForbidden(t *testing.T) {
	p := installConfigPlace()
	refusal := bundle.Finding{Severity: bundle.SeverityError, Reason: reason.Forbidden, Object: bundle.Ref{Kind: p.kind, Namespace: p.namespace}}
	r := gatherSet(t, Options{Complete: true}, objects.Set{Findings: bundle.Findings{refusal}})
	if slices.ContainsFunc(r.Findings, func(f bundle.Finding) bool { return f.Reason == reason.Forbidden }) {
		t.Errorf("findings %v", reasons(r.Findings))
	}
}

func TestWhatMachinesOfACloudReachWithoutAProxy(t *testing.T) {
	for want, p := range map[string]configv1.PlatformStatus{
		"":                              {Type: configv1.VSpherePlatformType},
		"169.254.169.254,.ec2.internal": {Type: configv1.AWSPlatformType, AWS: &configv1.AWSPlatformStatus{Region: "us-east-1"}},
		"169.254.169.254":               {Type: configv1.AzurePlatformType, Azure: &configv1.AzurePlatformStatus{CloudName: configv1.AzurePublicCloud}},
		"169.254.169.254,168.63.129.16": {Type: configv1.AzurePlatformType, Azure: &configv1.AzurePlatformStatus{CloudName: configv1.AzureUSGovernmentCloud}},
		"169.254.169.254,168.63.129.16,arm.example.com":                               {Type: configv1.AzurePlatformType, Azure: &configv1.AzurePlatformStatus{CloudName: configv1.AzureStackCloud, ARMEndpoint: "arm.example.com"}},
		"169.254.169.254,metadata,metadata.google.internal,metadata.google.internal.": {Type: configv1.GCPPlatformType},
	} {
		if got := strings.Join(platformNoProxy(&p), ","); got != want {
			t.Errorf("%s: %s, want %s", p.Type, got, want)
		}
	}
}
