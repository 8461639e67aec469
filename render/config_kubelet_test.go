package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refusals are what is wrong with an override of the kubelet's configuration.
func refusals(text string) []string {
	var list []string
	_, findings := DecodeSettings("kubelet: "+text, settingsRef)
	for _, f := range findings {
		list = append(list, string(f.Severity)+" "+f.Message)
	}
	return list
}

// TestFieldsOfTheOperator: with each of these an override could make every node accept what it must not, run what the bundle does not name, or
// not join. A field that leaves the list, or comes to it, is a decision that this table names too.
func TestFieldsOfTheOperator(t *testing.T) {
	values := map[string]string{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "authentication": "{anonymous: {enabled: true}}", "authorization": "{mode: AlwaysAllow}",
		"clusterDNS": "[10.0.0.1]", "clusterDomain": "example.com", "containerRuntimeEndpoint": "npipe://./pipe/other", "enforceNodeAllocatable": "[pods]",
		"healthzBindAddress": "0.0.0.0", "healthzPort": "1", "kind": "KubeletConfiguration", "port": "1", "readOnlyPort": "10255", "registerNode": "false",
		"registerWithTaints": "[]", "resolvConf": "/etc/resolv.conf", "rotateCertificates": "false", "serverTLSBootstrap": "false",
		"staticPodPath": `'C:\Users\Public'`, "tlsCertFile": `'C:\a'`, "tlsPrivateKeyFile": `'C:\a'`,
	}
	for _, field := range ownedKubeletFields() {
		if _, ok := values[field]; !ok {
			values[field] = "null" // a field that the table does not name yet
		}
	}
	for field, value := range values {
		want := []string{"error kubelet." + field + " is set by the operator: a node would not work with another value"}
		if diff := cmp.Diff(want, refusals("{"+field+": "+value+"}")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
}

func TestFieldsForLinux(t *testing.T) {
	for _, field := range linuxKubeletFields() {
		if diff := cmp.Diff([]string{"error kubelet." + field + " is for Linux only"}, refusals("{"+field+": null}")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
	for _, field := range []string{"cgroupDriver", "cpuManagerPolicy", "failSwapOn", "systemReservedCgroup", "userNamespaces"} {
		if !slices.Contains(linuxKubeletFields(), field) {
			t.Errorf("%s may be set", field)
		}
	}
}

// TestOverridesOfTheKubelet: what is neither the operator's nor for Linux may be set, with a value of its type.
func TestOverridesOfTheKubelet(t *testing.T) {
	for text, want := range map[string][]string{
		"{maxPods: 7, systemReserved: {memory: 1Gi}}": nil,
		"{podLogsDir: 'C:\\var\\log\\pods'}":          nil,
		"{maxPod: 7}":                                 {"error kubelet.maxPod is not a field of KubeletConfiguration"},
		"{volumePluginDir: 'C:\\..\\a'}":              {`error kubelet.volumePluginDir in "C:\\..\\a": not a path that a bundle may name: ".." leads to another folder`},
	} {
		if diff := cmp.Diff(want, refusals(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
