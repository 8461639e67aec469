package fleettest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/controller/gather"
	"wmco/internal/test/testenv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// checkForecast predicts the rollout of a mirror set and of a proxy, as the administrator and as a user who may not read layers. Without a change
// there is nothing to predict: what the command line renders is what the operator has published.
func (f *fleet) checkForecast(t *testing.T) {
	for _, args := range [][]string{nil, {"--payload", payloadFolder(t)}} {
		got := diff(t, f.plane.Kubeconfig, 0, args...)
		if got.Nodes+got.Restarts+len(got.Order)+len(got.Notes) > 0 {
			t.Errorf("no change, %v: %+v", args, got)
		}
	}
	change := filepath.Join(t.TempDir(), "change.yaml")
	for _, c := range []struct {
		name, object string
		restarts     int
	}{
		{"mirror", `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: forecast}, spec: {imageDigestMirrors: [{source: forecast.example.com, mirrors: ["mirror.example.com:5000"]}]}}`, 0},
		{"proxy", `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://forecast.example.com:3128", noProxy: .cluster.local}}`, size},
	} {
		must(t, os.WriteFile(change, []byte(c.object), 0o600))
		for user, kubeconfig := range map[string]string{"administrator": f.plane.Kubeconfig, "user without layers": f.reader(t, c.name)} {
			got := diff(t, kubeconfig, 1, "--from", change, "--payload", payloadFolder(t))
			isNoted := strings.Contains(strings.Join(got.Notes, " "), "cannot list secrets in namespace "+gather.OperatorNamespace)
			if got.Nodes != size || got.Restarts != c.restarts || got.Drains+got.Boots != 0 || len(got.Order) != size || isNoted != (user != "administrator") {
				t.Errorf("%s, %s: %+v", c.name, user, got)
			}
		}
	}
}

// predicted is what the command prints.
type predicted struct {
	Nodes, Restarts, Drains, Boots int
	Order                          []struct{ Node string }
	Notes                          []string
}

// diff compares the cluster, with what args add to it, with itself.
func diff(t *testing.T, kubeconfig string, status int, args ...string) predicted {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.Command, slices.Concat([]string{"diff", "--from", "cluster", "--against", "cluster", "-o", "json"}, args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_CONFIG_HOME="+t.TempDir())
	cmd.Dir = t.TempDir() // a folder named cluster would win over the word
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != status {
		t.Fatalf("%v\n%s%s", err, out.String(), errOut.String())
	}
	var got struct{ Rollout predicted }
	must(t, json.Unmarshal(out.Bytes(), &got))
	return got.Rollout
}

// reader is the kubeconfig of a user who may read everything but the Secrets of the operator's namespace that have no name here.
func (f *fleet) reader(t *testing.T, name string) string {
	t.Helper()
	rule := func(namespace string, r rbacv1.PolicyRule) testenv.Rule {
		return testenv.Rule{Namespace: namespace, PolicyRule: r}
	}
	read := []string{"get", "list"}
	secret := func(namespace, name string) testenv.Rule {
		return rule(namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}})
	}
	config := server.User(t, "reader-"+name,
		rule("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "configmaps"}, Verbs: read}),
		rule("", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: read}),
		rule("", rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io", "operator.openshift.io", "machineconfiguration.openshift.io", "machine.openshift.io"}, Resources: []string{"*"}, Verbs: read}),
		secret("openshift-config", "pull-secret"), secret("openshift-machine-config-operator", "node-bootstrapper-token"),
		secret(gather.OperatorNamespace, "windows-machine-config-operator-tls"),
	)
	return kubeconfig(t, config)
}

func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	config := clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, ClientCertificate: c.CertFile, ClientKey: c.KeyFile}},
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(config, path))
	return path
}
