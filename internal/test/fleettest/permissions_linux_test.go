package fleettest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/layers"
	"wmco/internal/test/testenv"
)

// kubeletCertificate is the client certificate of a kubelet, with its key. The node agent has no other identity.
const kubeletCertificate = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// identityOf returns the configuration with which the agent of a machine asks.
func (f *fleet) identityOf(m *machine) *rest.Config {
	pair := []byte(m.Text(kubeletCertificate))
	return &rest.Config{Host: f.plane.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: f.plane.Config.CAData, CertData: pair, KeyData: pair}}
}

// checkPermissions asks as a joined node: it reads its own layers and reports on its own Node.
func (f *fleet) checkPermissions(t *testing.T) {
	own, other := f.machines[0], f.machines[1]
	c := testenv.NewClient(t, f.identityOf(own))
	desired, err := published.DecodeDesired(f.node(t, own.name).Annotations[published.DesiredAnnotation])
	must(t, err)
	layer := desired.Cluster.Names()[0]
	// A layer that the Role does not name. It lacks the label, so the operator leaves it alone.
	hidden := secret(gather.OperatorNamespace, "windows-layer-"+strings.Repeat("0", 40)+"-1of1")
	must(t, f.Create(t.Context(), hidden))
	t.Cleanup(func() { must(t, f.Delete(context.Background(), hidden)) })
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	get := func(s *corev1.Secret) error { return c.Get(t.Context(), client.ObjectKeyFromObject(s), s) }
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	annotate := merge(`{"metadata":{"annotations":{"example.com/note":"x"}}}`)
	access := metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: layers.Access}
	inNamespace := client.InNamespace(gather.OperatorNamespace)
	for _, tt := range []struct {
		name    string
		allowed bool
		err     error
	}{
		{"reading a published layer", true, get(secret(gather.OperatorNamespace, layer))},
		{"reading its own Node", true, c.Get(t.Context(), client.ObjectKey{Name: own.name}, &corev1.Node{})},
		{"reporting on its own Node", true, c.Status().Patch(t.Context(), node(own.name), annotate)},
		{"reading a layer that the Role does not name", false, get(secret(gather.OperatorNamespace, hidden.Name))},
		{"reading the private key", false, get(secret(gather.OperatorNamespace, "cloud-private-key"))},
		{"reading the key of digests", false, get(secret(gather.OperatorNamespace, "windows-digest-key"))},
		{"reading the key of windows_exporter", false, get(secret(gather.OperatorNamespace, "windows-machine-config-operator-tls"))},
		{"reading the bootstrap token", false, get(secret("openshift-machine-config-operator", "node-bootstrapper-token"))},
		{"reading the pull secret", false, get(secret("openshift-config", "pull-secret"))},
		{"listing Secrets", false, c.List(t.Context(), &corev1.SecretList{}, inNamespace)},
		{"listing ConfigMaps", false, c.List(t.Context(), &corev1.ConfigMapList{}, inNamespace)},
		{"creating a Secret", false, c.Create(t.Context(), secret(gather.OperatorNamespace, "mine"))},
		{"changing a published layer", false, c.Patch(t.Context(), secret(gather.OperatorNamespace, layer), annotate)},
		{"deleting a published layer", false, c.Delete(t.Context(), secret(gather.OperatorNamespace, layer))},
		{"changing its access", false, c.Patch(t.Context(), &rbacv1.Role{ObjectMeta: access}, annotate)},
		{"giving access to another user", false, c.Patch(t.Context(), &rbacv1.RoleBinding{ObjectMeta: access}, annotate)},
		{"reading another Node", false, c.Get(t.Context(), client.ObjectKey{Name: other.name}, &corev1.Node{})},
		{"listing all Nodes", false, c.List(t.Context(), &corev1.NodeList{})},
		{"annotating another Node", false, c.Patch(t.Context(), node(other.name), annotate)},
		{"reporting on another Node", false, c.Status().Patch(t.Context(), node(other.name), annotate)},
		{"removing a taint of its own Node", false, c.Patch(t.Context(), node(own.name), merge(`{"spec":{"taints":null}}`))},
		{"giving its own Node a role", false, c.Patch(t.Context(), node(own.name), merge(`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`))},
		{"deleting its own Node", false, c.Delete(t.Context(), node(own.name))},
		{"deleting another Node", false, c.Delete(t.Context(), node(other.name))},
		{"renewing the Lease of another node", false, c.Patch(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: other.name}}, annotate)},
	} {
		switch {
		case tt.allowed && tt.err != nil:
			t.Errorf("%s: %v", tt.name, tt.err)
		case !tt.allowed && !apierrors.IsForbidden(tt.err):
			t.Errorf("%s is not refused: %v", tt.name, tt.err)
		}
	}
}

// checkRequests compares the audit log with what node agents and the operator need: the agents read no other Node and no Secret that is
// not a layer, and the operator is never refused.
func (f *fleet) checkRequests(t *testing.T) {
	asked := map[string]bool{}
	for _, q := range f.requests(t)[f.since:] {
		if q.User == operatorUser && q.Status == http.StatusForbidden {
			t.Errorf("the operator is refused: %s", q)
		}
		if q.Agent != agentProgram {
			continue
		}
		asked[what(q)] = true
		name, isNode := strings.CutPrefix(q.User, "system:node:")
		var foreign bool
		switch q.Resource {
		case "secrets":
			foreign = q.Namespace != gather.OperatorNamespace || !strings.HasPrefix(q.Name, "windows-layer-")
		case "nodes", "nodes/status", "leases":
			foreign = q.Name != name // also of a list or watch: the API server takes the name from the field selector
		}
		if !isNode || foreign || q.Status == http.StatusForbidden && q.Resource != "secrets" {
			t.Errorf("a node agent asks for what it does not need: %s", q)
		}
	}
	want := []string{
		"create events", "get leases.coordination.k8s.io", "get nodes", "get secrets", "patch nodes/status", "watch nodes",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("requests of node agents (-want +got):\n%s", diff)
	}
}
