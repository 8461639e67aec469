package jointest_test

import (
	"crypto/tls"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/bundle/published"
)

// onAzure makes the cluster one on Azure.
func (w *world) onAzure() {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": map[string]any{"name": "cluster"}}}
	azure := `{"status":{"platform":"Azure","platformStatus":{"type":"Azure","azure":{"cloudName":"AzurePublicCloud","resourceGroupName":"a"}}}}`
	must(w.t, w.Status().Patch(w.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(azure))))
}

// TestCloudNodeManagerHasAnIdentityOnAzure that the node agent asked for and the operator approved, and only administrators can read.
func TestCloudNodeManagerHasAnIdentityOnAzure(t *testing.T) {
	const file = `C:\k\cloud-node-manager-certs\cloud-node-manager-client-current.pem`
	w := newWorld(t)
	w.onAzure()
	m := w.machine("instance-z", "192.0.2.65")
	w.instances("192.0.2.65")
	w.operate()
	eventually(t, "the certificate of cloud-node-manager", func() bool { return strings.Contains(m.Text(file), "CERTIFICATE") })
	eventually(t, "the node", func() bool { return w.joined("instance-z") })
	text := []byte(m.Text(file))
	pair, err := tls.X509KeyPair(text, text)
	must(t, err)
	if pair.Leaf.Subject.CommonName != published.CloudNodeManagerUser("instance-z") {
		t.Errorf("it is for %s", pair.Leaf.Subject)
	}
	infos, err := m.Stat(t.Context(), []string{file})
	must(t, err)
	if infos[0].Access != bundle.AccessAdmins {
		t.Errorf("its access is %q", infos[0].Access)
	}
	// As cloud-node-manager itself reaches the API server.
	config, err := agent.Connection{Kubeconfig: `C:\k\cloud-node-manager-kubeconfig`, ReadFile: m.ReadFile}.RESTConfig()
	must(t, err)
	c, err := client.New(config, client.Options{Scheme: w.Scheme()})
	must(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	must(t, c.Create(t.Context(), review))
	if review.Status.UserInfo.Username != published.CloudNodeManagerUser("instance-z") {
		t.Errorf("the API server knows it as %s", review.Status.UserInfo.Username)
	}
	node := w.node("instance-z")
	must(t, c.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"node.kubernetes.io/instance-type":"a"}}}`))))
}
