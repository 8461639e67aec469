package rbac

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
)

// request returns a request for a certificate of this user.
func request(t *testing.T, user string, groups ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// TestWhoeverApprovesCertificatesIsAnyUser, as in docs/security.md: the operator approves by rules of its own, and the right to approve
// is about a signer, not about a user. With the bootstrap token, which the operator may read, its token is that of any user but the group
// system:masters.
func TestWhoeverApprovesCertificatesIsAnyUser(t *testing.T) {
	cluster.Load(t, ".", filepath.Join("..", "admission"))
	th := newThief(t)
	const bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	th.have(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrapper"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: bootstrapper}},
	})
	config := rest.CopyConfig(cluster.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: bootstrapper, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	asks := testenv.NewClient(t, config)
	for signer, who := range map[string][]byte{
		certificatesv1.KubeAPIServerClientSignerName:        request(t, "system:kube-controller-manager"),
		certificatesv1.KubeAPIServerClientKubeletSignerName: request(t, "system:node:master-0", "system:nodes"),
	} {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "thief-"},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: who, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}},
		}
		if err := asks.Create(t.Context(), csr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { th.without(csr) })
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Thief"}}
		if err := th.SubResource("approval").Update(t.Context(), csr); err != nil {
			t.Errorf("%s: the documentation lists that this is left: %v", signer, err)
			continue
		}
		err := testenv.Eventually(t.Context(), "the certificate", func() bool {
			return th.admin.Get(t.Context(), client.ObjectKeyFromObject(csr), csr) == nil && len(csr.Status.Certificate) > 0
		})
		if err != nil {
			t.Errorf("%s: the documentation lists that this is left: %v", signer, err)
		}
	}
}

// TestWhatIsLeftOutsideOfSecrets: rights that the operator needs for any object of a kind.
func TestWhatIsLeftOutsideOfSecrets(t *testing.T) {
	cluster.Load(t, ".", filepath.Join("..", "admission"))
	th := newThief(t)
	th.have(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "linux-1"}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "any"}, Spec: corev1.PodSpec{NodeName: "linux-1", Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	th.have(pod)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "linux-1"}}
	for name, err := range map[string]error{
		"patching any Node": th.Patch(t.Context(), node.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`))),
		"evicting any Pod":  th.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}),
		"deleting any Node": th.Delete(t.Context(), node.DeepCopy()),
	} {
		if err != nil {
			t.Errorf("%s: the documentation lists that this is left: %v", name, err)
		}
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "cloud-private-key"}}
	th.have(own)
	if err := th.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Errorf("Secrets of its own namespace: the documentation lists that this is left: %v", err)
	}
	for name, err := range map[string]error{
		"status of a Node":      th.Status().Patch(t.Context(), node.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"addresses":[]}}`))),
		"creating a Pod":        th.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}),
		"deleting a Pod":        th.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "any"}}),
		"a Secret of others":    th.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "x"}, &corev1.Secret{}),
		"Secrets of others":     th.List(t.Context(), &corev1.SecretList{}, client.InNamespace("openshift-machine-api")),
		"any ConfigMap":         th.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "windows-instances"}}),
		"a ConfigMap elsewhere": th.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "trusted-ca"}}),
		"a Role":                th.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "x"}}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
