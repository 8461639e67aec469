package jointest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/nodestate"
	"wmco/controller/gather"
	"wmco/controller/layers"
	"wmco/internal/test/observer"
	"wmco/internal/test/testenv"
)

// TestTheCommandsSeeWhatTheOperatorDoes: what `wmco diff` renders from the cluster is what the operator has published, a must-gather can be read back
// and holds no secret, and a node may read its own layers and nothing else.
func TestTheCommandsSeeWhatTheOperatorDoes(t *testing.T) {
	w := newWorld(t)
	names := []string{"machine-a", "machine-b"}
	for i, address := range []string{"192.0.2.11", "192.0.2.12"} {
		w.machine(names[i], address)
		w.machineObject(names[i], address)
	}
	w.operate()
	for _, name := range names {
		eventually(t, "node "+name, func() bool { return w.joined(name) && observer.IsCurrent(*w.node(name)) })
	}
	w.checkForecast(names)
	w.checkGather(names)
	w.checkRights(names[0], names[1])
}

// checkForecast predicts the rollout of a mirror set and of a proxy, as the administrator and as a user who may not read layers. Without a change
// there is nothing to predict.
func (w *world) checkForecast(names []string) {
	w.t.Helper()
	payload, err := filepath.Abs(w.settings().Payload)
	must(w.t, err)
	admin := server.ControlPlane(w.t).Kubeconfig
	for _, args := range [][]string{nil, {"--payload", payload}} {
		got := w.diff(admin, 0, args...)
		if got.Nodes+got.Restarts+len(got.Order)+len(got.Notes) > 0 {
			w.t.Errorf("no change, %v: %+v", args, got)
		}
	}
	reader := w.reader()
	change := filepath.Join(w.t.TempDir(), "change.yaml")
	for _, c := range []struct {
		name, object string
		restarts     int
	}{
		{"mirror", `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: forecast}, spec: {imageDigestMirrors: [{source: forecast.example.com, mirrors: ["mirror.example.com:5000"]}]}}`, 0},
		{"proxy", `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://forecast.example.com:3128", noProxy: .cluster.local}}`, len(names)},
	} {
		must(w.t, os.WriteFile(change, []byte(c.object), 0o600))
		for user, kubeconfig := range map[string]string{"administrator": admin, "user without layers": reader} {
			got := w.diff(kubeconfig, 1, "--from", change, "--payload", payload)
			isNoted := strings.Contains(strings.Join(got.Notes, " "), "cannot list secrets in namespace "+gather.OperatorNamespace)
			if got.Nodes != len(names) || got.Restarts != c.restarts || got.Drains+got.Boots != 0 || len(got.Order) != len(names) || isNoted != (user != "administrator") {
				w.t.Errorf("%s, %s: %+v", c.name, user, got)
			}
		}
	}
}

// predicted is what `wmco diff` prints of a rollout.
type predicted struct {
	Nodes, Restarts, Drains, Boots int
	Order                          []struct{ Node string }
	Notes                          []string
}

// diff compares the cluster, with what args add to it, with itself.
func (w *world) diff(kubeconfig string, status int, args ...string) predicted {
	w.t.Helper()
	out := w.command(kubeconfig, status, slices.Concat([]string{"diff", "--from", "cluster", "--against", "cluster", "-o", "json"}, args)...)
	var got struct{ Rollout predicted }
	must(w.t, json.Unmarshal([]byte(out), &got))
	return got.Rollout
}

// command runs wmco, which ends with a status, and returns what it prints.
func (w *world) command(kubeconfig string, status int, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), programs.Command, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_CONFIG_HOME="+w.t.TempDir())
	cmd.Dir = w.t.TempDir() // a folder named cluster would win over the word
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != status {
		w.t.Fatalf("%q: %v\n%s%s", args, err, &out, &problems)
	}
	return out.String()
}

// reader is the kubeconfig of a user who may read everything but the Secrets of the operator's namespace that have no name here.
func (w *world) reader() string {
	w.t.Helper()
	rule := func(namespace string, r rbacv1.PolicyRule) testenv.Rule {
		return testenv.Rule{Namespace: namespace, PolicyRule: r}
	}
	read := []string{"get", "list"}
	secret := func(namespace, name string) testenv.Rule {
		return rule(namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}})
	}
	c := server.User(w.t, "reader",
		rule("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "configmaps"}, Verbs: read}),
		rule("", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: read}),
		rule("", rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io", "operator.openshift.io", "machineconfiguration.openshift.io", "machine.openshift.io"}, Resources: []string{"*"}, Verbs: read}),
		secret("openshift-config", "pull-secret"), secret("openshift-machine-config-operator", "node-bootstrapper-token"),
		secret(gather.OperatorNamespace, "windows-machine-config-operator-tls"),
	)
	return kubeconfigOf(w.t, c)
}

func kubeconfigOf(t *testing.T, c *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, ClientCertificate: c.CertFile, ClientKey: c.KeyFile}},
	}, path))
	return path
}

// checkGather collects the cluster, reads the folder back, and looks for the values of every Secret that the cluster has. The machines have no kubelet
// to ask for logs: the folder notes that.
func (w *world) checkGather(names []string) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "must-gather")
	admin := server.ControlPlane(w.t).Kubeconfig
	w.command(admin, 0, "gather", "--out", dir)
	updated, table := 0, w.command(admin, 0, "status", "--from", dir)
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 1 && columns[1] == string(nodestate.Updated) {
			updated++
		}
	}
	if updated != len(names) {
		w.t.Errorf("%s", table)
	}
	w.command(admin, 0, "render", "--from", dir, "--all")
	var all strings.Builder
	must(w.t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	var secrets corev1.SecretList
	must(w.t, w.List(w.t.Context(), &secrets))
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			isPublic := strings.HasSuffix(key, ".crt") || key == corev1.ServiceAccountNamespaceKey || len(value) < 16
			if !isPublic && strings.Contains(all.String(), string(value)) {
				w.t.Errorf("the folder holds %s of Secret %s", key, client.ObjectKeyFromObject(&s))
			}
		}
	}
	missing, err := os.ReadFile(filepath.Join(dir, "missing.txt"))
	must(w.t, err)
	for _, name := range names {
		for _, file := range []string{"desired.json", "applied.json", "plan.json", "report.json"} {
			text, err := os.ReadFile(filepath.Join(dir, "nodes", name, file))
			if err != nil || strings.Contains(string(text), `"missing": "its Secrets`) {
				w.t.Errorf("%s of %s: %v\n%s", file, name, err, text)
			}
		}
		if !strings.Contains(string(missing), "nodes/"+name+"/logs/") {
			w.t.Errorf("missing.txt does not name the log of %s:\n%s", name, missing)
		}
	}
}

// checkRights asks as a joined node: it reads its own layers and reports on its own Node.
func (w *world) checkRights(own, other string) {
	w.t.Helper()
	ctx, c := w.t.Context(), w.kubelet(own).as
	layer := w.desiredOf(own).Cluster.Names()[0]
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	// A layer that the Role does not name. It lacks the label, so the operator leaves it alone.
	hidden := secret(gather.OperatorNamespace, "windows-layer-"+strings.Repeat("0", 40)+"-1of1")
	w.create(hidden)
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	get := func(namespace, name string) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
	}
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	annotate := merge(`{"metadata":{"annotations":{"example.com/note":"x"}}}`)
	access := metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: layers.Access}
	inNamespace := client.InNamespace(gather.OperatorNamespace)
	for _, tt := range []struct {
		name    string
		allowed bool
		err     error
	}{
		{"reading a published layer", true, get(gather.OperatorNamespace, layer)},
		{"reading its own Node", true, c.Get(ctx, client.ObjectKey{Name: own}, &corev1.Node{})},
		{"reporting on its own Node", true, c.Status().Patch(ctx, node(own), annotate)},
		{"reading a layer that the Role does not name", false, get(gather.OperatorNamespace, hidden.Name)},
		{"reading the private key", false, get(gather.OperatorNamespace, "cloud-private-key")},
		{"reading the key of digests", false, get(gather.OperatorNamespace, "windows-digest-key")},
		{"reading the key of windows_exporter", false, get(gather.OperatorNamespace, "windows-machine-config-operator-tls")},
		{"reading the bootstrap token", false, get("openshift-machine-config-operator", "node-bootstrapper-token")},
		{"reading the pull secret", false, get("openshift-config", "pull-secret")},
		{"listing Secrets", false, c.List(ctx, &corev1.SecretList{}, inNamespace)},
		{"listing ConfigMaps", false, c.List(ctx, &corev1.ConfigMapList{}, inNamespace)},
		{"creating a Secret", false, c.Create(ctx, secret(gather.OperatorNamespace, "mine"))},
		{"changing a published layer", false, c.Patch(ctx, secret(gather.OperatorNamespace, layer), annotate)},
		{"deleting a published layer", false, c.Delete(ctx, secret(gather.OperatorNamespace, layer))},
		{"changing its access", false, c.Patch(ctx, &rbacv1.Role{ObjectMeta: access}, annotate)},
		{"giving access to another user", false, c.Patch(ctx, &rbacv1.RoleBinding{ObjectMeta: access}, annotate)},
		{"reading another Node", false, c.Get(ctx, client.ObjectKey{Name: other}, &corev1.Node{})},
		{"listing all Nodes", false, c.List(ctx, &corev1.NodeList{})},
		{"annotating another Node", false, c.Patch(ctx, node(other), annotate)},
		{"reporting on another Node", false, c.Status().Patch(ctx, node(other), annotate)},
		{"removing a taint of its own Node", false, c.Patch(ctx, node(own), merge(`{"spec":{"taints":null}}`))},
		{"giving its own Node a role", false, c.Patch(ctx, node(own), merge(`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`))},
		{"deleting its own Node", false, c.Delete(ctx, node(own))},
		{"deleting another Node", false, c.Delete(ctx, node(other))},
		{"renewing the Lease of another node", false, c.Patch(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: other}}, annotate)},
	} {
		switch {
		case tt.allowed && tt.err != nil:
			w.t.Errorf("%s: %v", tt.name, tt.err)
		case !tt.allowed && !apierrors.IsForbidden(tt.err):
			w.t.Errorf("%s is not refused: %v", tt.name, tt.err)
		}
	}
}
