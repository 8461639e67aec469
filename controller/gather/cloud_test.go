package gather

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
)

// TestAMachineOfAWSWithADomainOfItsOwn: its names are taken as kubelets on Linux take them, and its identity.
func TestAMachineOfAWSWithADomainOfItsOwn(t *testing.T) {
	r := gatherFrom(t, Options{}, object(groupMachine, "Machine", namespaceMachines, "m-a", `{"metadata":{"name":"m-a","labels":{"`+labelMachineOS+`":"Windows"}},"spec":{"providerID":"aws:///a/i-1"},"status":{"addresses":[`+
		`{"type":"InternalIP","address":"10.0.0.5"},{"type":"InternalDNS","address":"ip-10-0-0-5.Corp.example.com."},{"type":"Hostname","address":"ip-10-0-0-5.corp.example.com lab.example.com"},{"type":"InternalDNS","address":"not a_name"}]}}`))
	if len(r.Nodes) != 1 {
		t.Fatalf("%+v", r.Nodes)
	}
	if diff := cmp.Diff([]string{"ip-10-0-0-5.corp.example.com", "not"}, r.Nodes[0].HostNames); diff != "" || r.Nodes[0].ProviderID != "aws:///a/i-1" {
		t.Errorf("identity %q, names (-want +got):\n%s", r.Nodes[0].ProviderID, diff)
	}
}

// TestANodeKeepsItsIdentity: whoever may patch Nodes writes another one into its report, and its kubelet would be started again with it.
func TestANodeKeepsItsIdentity(t *testing.T) {
	for platform, want := range map[string]string{"AWS": "aws:///a/i-1", "GCP": ""} {
		r := gatherFrom(t, Options{}, object(groupConfig, "Infrastructure", "", clusterName, `{"status":{"platformStatus":{"type":"`+platform+`"}}}`),
			object("", "Node", "", "win-a", `{"metadata":{"name":"win-a","labels":{"kubernetes.io/os":"windows"},"annotations":{"`+published.ReportAnnotation+`":"{\"schema\":1,\"state\":\"Applied\",\"facts\":{\"schema\":1,\"providerID\":\"aws:///a/i-2\",\"addresses\":[\"10.0.0.5\"]}}"}},`+
				`"spec":{"providerID":"aws:///a/i-1"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.5"}]}}`))
		if len(r.Nodes) != 1 || r.Nodes[0].Facts.ProviderID != "aws:///a/i-2" || r.Nodes[0].ProviderID != want {
			t.Errorf("%s: %+v", platform, r.Nodes)
		}
	}
}

// TestADNSOfTheClusterAlone is a warning with the name and the addresses that the DNS of the hosts has to have.
func TestADNSOfTheClusterAlone(t *testing.T) {
	for status, want := range map[string]string{
		`{"type":"AWS","aws":{"cloudLoadBalancerConfig":{"dnsType":"ClusterHosted","clusterHosted":{"apiIntLoadBalancerIPs":["10.0.0.2","10.0.0.3"]}}}}`: "status.platformStatus.aws.cloudLoadBalancerConfig.dnsType: add api-int.example.com with 10.0.0.2, 10.0.0.3 to",
		`{"type":"Azure","azure":{"cloudLoadBalancerConfig":{"dnsType":"ClusterHosted"}}}`:                                                               "status.platformStatus.azure.cloudLoadBalancerConfig.dnsType: add api-int.example.com with the addresses of the internal load balancer to",
		`{"type":"GCP","gcp":{"cloudLoadBalancerConfig":{"dnsType":"ClusterHosted","clusterHosted":{}}}}`:                                                "status.platformStatus.gcp.cloudLoadBalancerConfig.dnsType: add api-int.example.com with the addresses of the internal load balancer to",
		`{"type":"GCP","gcp":{"cloudLoadBalancerConfig":{"dnsType":"PlatformDefault"}}}`:                                                                 "",
		`{"type":"AWS","aws":{}}`: "",
		`{"type":"None"}`:         "",
	} {
		r := gatherFrom(t, Options{}, object(groupConfig, "Infrastructure", "", clusterName, `{"status":{"apiServerInternalURI":"https://api-int.example.com:6443","platformStatus":`+status+`}}`))
		got := ""
		for _, f := range r.Findings {
			if f.Reason == reason.ClusterHostedDNS {
				fix, _, _ := strings.Cut(f.Fix, " the DNS")
				got += f.Field + ": " + fix
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}

// TestTheIdentityOfAzureIsReadWithoutSecrets, where it is readable, and on Azure alone.
func TestTheIdentityOfAzureIsReadWithoutSecrets(t *testing.T) {
	pool := object(groupMachineConfig, "MachineConfigPool", "", workerPool, `{"status":{"configuration":{"name":"rendered-worker-a"}}}`)
	const managed = `{"tenantId":"t","aadClientSecret":"hunter2","useManagedIdentityExtension":true,"disableOutboundSNAT":null}`
	for _, c := range []struct {
		platform, text string
		want           render.AzureIdentity
	}{
		{"Azure", managed, render.AzureIdentity{Tenant: "t", Managed: true}},
		{"GCP", managed, render.AzureIdentity{}},
		{"Azure", `{"useManagedIdentityExtension":"hunter2"}`, render.AzureIdentity{}},
		{"Azure", `[global]`, render.AzureIdentity{}},
	} {
		r := gatherFrom(t, Options{}, pool, object(groupConfig, "Infrastructure", "", clusterName, `{"status":{"platformStatus":{"type":"`+c.platform+`"}}}`),
			object(groupMachineConfig, "MachineConfig", "", "rendered-worker-a",
				`{"spec":{"config":{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"`+fileCloudConf+`","contents":{"source":"data:,`+url.PathEscape(c.text)+`"}}]}}}}`))
		if diff := cmp.Diff(c.want, r.Cluster.Machine.Azure); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.platform, c.text, diff)
		}
		if strings.Contains(fmt.Sprintf("%+v", r), "hunter2") {
			t.Errorf("%s %s: the secret is read", c.platform, c.text)
		}
	}
}

// TestCredentialProvidersOfOtherCloudsAreNoted: errors in a file that no Windows node reads refuse nothing.
func TestCredentialProvidersOfOtherCloudsAreNoted(t *testing.T) {
	pool := object(groupMachineConfig, "MachineConfigPool", "", workerPool, `{"status":{"configuration":{"name":"rendered-worker-a"}}}`)
	for file, want := range map[string]map[string]string{
		`"contents":{"source":"data:,a%3Ab"}`:             {"acr-credential-provider.yaml": "a:b"},
		`"contents":{"source":"https://example.com/x"}`:   nil,
		`"append":[{"source":"data:,a"}]`:                 nil,
		`"contents":{"source":"data:;base64,not base64"}`: nil,
	} {
		r := gatherFrom(t, Options{}, pool, object(groupMachineConfig, "MachineConfig", "", "rendered-worker-a",
			`{"spec":{"config":{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"`+dirCredentialProviders+`acr-credential-provider.yaml",`+file+`}]}}}}`))
		if diff := cmp.Diff(want, r.Cluster.Machine.Providers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if slices.ContainsFunc(reasons(r.Findings), func(text string) bool { return strings.Contains(text, "InputInvalid spec.config") }) {
			t.Errorf("%s: %v", file, reasons(r.Findings))
		}
	}
}

// TestAnAgentThatKnowsNoOtherRoutes gets none: it would refuse the bundle.
func TestAnAgentThatKnowsNoOtherRoutes(t *testing.T) {
	for want, features := range map[bool][]published.Feature{true: {published.FeatureNodeName}, false: published.Features()} {
		text, err := published.Report{State: published.StateApplied, Features: features}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		node := object("", "Node", "", "win-a", `{"metadata":{"name":"win-a","labels":{"kubernetes.io/os":"windows"},"annotations":{"`+published.ReportAnnotation+`":`+strconv.Quote(text)+`}}}`)
		if r := gatherFrom(t, Options{}, []objects.Object{node}...); len(r.Nodes) != 1 || r.Nodes[0].NoAmazonRoutes != want {
			t.Errorf("%v: %+v", features, r.Nodes)
		}
	}
}
