package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// orphanVariable makes the test program start a control plane, print its folder, and wait to be killed.
const orphanVariable = "WMCO_TESTENV_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		c, err := Start(Options{})
		if err != nil {
			fmt.Println("error", err)
		}
		fmt.Println(c.folders.root)
		select {}
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// start starts a control plane until the end of the test, or skips it.
func start(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	c, err := Start(o)
	var missing *MissingError
	if errors.As(err, &missing) {
		t.Skip(missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestAFailedStartReturnsTheLog(t *testing.T) {
	folder, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	for _, name := range []string{Etcd, APIServer} {
		script := "#!/bin/sh\necho out of order >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(Variable, folder)
	if _, err := Start(Options{Folder: data}); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Errorf("%s still exists", data)
	}
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(Patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never happens: %s", what)
		}
	}
}

// TestControllers: what nodes need of them works, and goes on when the API server was away.
func TestControllers(t *testing.T) {
	c := start(t, Options{Controllers: true, NodeGrace: 6 * time.Second, Audit: true})
	t.Run("the renewal of a node is approved and signed, its first request is only signed", func(t *testing.T) { checkSigning(t, c) })
	t.Run("a node without heartbeat is lost", func(t *testing.T) { checkLifecycle(t, c, "before") })
	t.Run("a service account gets its token and the CA", func(t *testing.T) { checkToken(t, c) })
	t.Run("requests are in the audit log", func(t *testing.T) { checkAudit(t, c) })
	admin := newClient(t, c.Config)
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "before"}, &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	if err := c.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "before"}, &corev1.Node{}); err == nil {
		t.Error("a stopped API server answers")
	}
	if err := c.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "before"}, &corev1.Node{}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	t.Run("after a restart of the API server", func(t *testing.T) { checkLifecycle(t, c, "after") })
}

// request creates the CSR of a kubelet.
func request(t *testing.T, requester *rest.Config, node string) (*certificatesv1.CertificateSigningRequest, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	return csr, newClient(t, requester).Create(t.Context(), csr)
}

func checkSigning(t *testing.T, c *ControlPlane) {
	admin := newClient(t, c.Config)
	node, err := c.AddUser("system:node:a", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	bootstrapper, err := c.AddUser("bootstrapper")
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrapper"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "bootstrapper"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
	}); err != nil {
		t.Fatal(err)
	}
	var renewal, first *certificatesv1.CertificateSigningRequest
	// The authorizers learn of a new binding a moment later.
	eventually(t, "the requests", func() (done bool) {
		renewal, err = request(t, node, "a")
		if err == nil {
			first, err = request(t, bootstrapper, "b")
		}
		return err == nil
	})
	signed := func(csr *certificatesv1.CertificateSigningRequest) func() bool {
		return func() bool {
			return admin.Get(t.Context(), client.ObjectKeyFromObject(csr), csr) == nil && len(csr.Status.Certificate) > 0
		}
	}
	eventually(t, "the certificate of the renewal", signed(renewal))
	if signed(first)() || len(first.Status.Conditions) > 0 {
		t.Errorf("nobody approved it: %+v", first.Status)
	}
	first.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if err := admin.SubResource("approval").Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the certificate of the first request", signed(first))
}

func checkLifecycle(t *testing.T, c *ControlPlane, name string) {
	admin := newClient(t, c.Config)
	now := metav1.Now()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	created := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Test"}}
	// Not an update: the node lifecycle controller taints a new Node at once.
	if err := admin.Status().Patch(t.Context(), node, client.MergeFrom(created)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a node that is lost", func() bool {
		return admin.Get(t.Context(), client.ObjectKeyFromObject(node), node) == nil && len(node.Status.Conditions) > 0 &&
			node.Status.Conditions[0].Status == corev1.ConditionUnknown
	})
}

func checkToken(t *testing.T, c *ControlPlane) {
	admin := newClient(t, c.Config)
	const namespace = "openshift-machine-config-operator"
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "node-bootstrapper"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "node-bootstrapper"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var secret corev1.Secret
	eventually(t, "the token", func() bool {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "token"}, &secret) == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0
	})
	if len(secret.Data[corev1.ServiceAccountRootCAKey]) == 0 {
		t.Error("the token has no CA")
	}
	with := rest.AnonymousClientConfig(c.Config)
	with.BearerToken = string(secret.Data[corev1.ServiceAccountTokenKey])
	var own corev1.ConfigMap
	if err := newClient(t, with).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &own); err == nil || !strings.Contains(err.Error(), "system:serviceaccount:"+namespace+":node-bootstrapper") {
		t.Errorf("the token identifies nobody: %v", err)
	}
}

// checkAudit: an impersonated user is the one whose permissions count.
func checkAudit(t *testing.T, c *ControlPlane) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate, config.UserAgent = rest.ImpersonationConfig{UserName: "somebody"}, "test"
	if err := newClient(t, config).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}); !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	var mine []Request
	eventually(t, "the request", func() bool {
		all, err := c.Requests()
		if err != nil {
			t.Fatal(err)
		}
		mine = slices.DeleteFunc(all, func(r Request) bool { return r.User != "somebody" || !r.IsWrite() })
		return len(mine) > 0
	})
	want := []Request{{User: "somebody", Agent: "test", Verb: "create", Resource: "configmaps", Namespace: "default", Status: 403}}
	if !slices.Equal(mine, want) {
		t.Errorf("%v", mine)
	}
}
