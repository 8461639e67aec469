package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The objects of a cluster (machine-config-operator, manifests/machineconfigserver).
const (
	bootstrapNamespace = "openshift-machine-config-operator"
	bootstrapAccount   = "node-bootstrapper"
	bootstrapSecret    = "node-bootstrapper-token"
	bootstrapBinding   = "system-bootstrap-node-bootstrapper"
	bootstrapRole      = "system:node-bootstrapper"
)

// BootstrapUser is who requests the first certificate of a kubelet.
const BootstrapUser = "system:serviceaccount:" + bootstrapNamespace + ":" + bootstrapAccount

// tokenSeconds is the validity of the bootstrap token: longer than any run, also of virtual time.
const tokenSeconds = 366 * 24 * 60 * 60

// Connect is ConnectTo the API server of an administrator. ClientCA is the CA of the certificates that the API server shows to
// kubelets.
func Connect(ctx context.Context, admin *rest.Config, clientCA []byte) error {
	url := admin.Host
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return ConnectTo(ctx, admin, Endpoint{URL: url, CA: admin.CAData, ClientCA: clientCA})
}

// Endpoint is an API server as nodes see it.
type Endpoint struct {
	URL string
	// CA is that of the API server, ClientCA that of the certificates that it shows to kubelets.
	CA, ClientCA []byte
}

// ConnectTo changes the objects of a cluster in the API server, such as one of golden/clusters, so that bundles rendered from them
// reach this API server: the internal URL of Infrastructure/cluster, the Secret with the bootstrap token and the CA, and the CAs of
// clients in the ControllerConfig.
func ConnectTo(ctx context.Context, admin *rest.Config, to Endpoint) error {
	c, err := client.New(withoutWarnings(admin), client.Options{})
	if err != nil {
		return err
	}
	for _, p := range []patch{
		{
			schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"}, "cluster",
			"status", map[string]any{"status": map[string]any{"apiServerInternalURI": to.URL}},
		},
		{
			schema.GroupVersionKind{
				Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "ControllerConfig",
			},
			"machine-config-controller", "",
			map[string]any{"spec": map[string]any{"kubeAPIServerServingCAData": to.ClientCA}},
		},
	} {
		if err := p.apply(ctx, c); err != nil {
			return fmt.Errorf("connecting %s/%s: %w", p.kind.Kind, p.name, err)
		}
	}
	if err := makeBootstrapToken(ctx, c, to.CA); err != nil {
		return fmt.Errorf("making the bootstrap token: %w", err)
	}
	return nil
}

// withoutWarnings does not print what the API server warns about.
func withoutWarnings(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.WarningHandler = rest.NoWarnings{}
	return c
}

// patch changes an object, or its status.
type patch struct {
	kind        schema.GroupVersionKind
	name        string
	subresource string
	change      any
}

func (p patch) apply(ctx context.Context, c client.Client) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(p.kind)
	o.SetName(p.name)
	text, err := json.Marshal(p.change)
	if err != nil {
		return err
	}
	change := client.RawPatch(types.MergePatchType, text)
	if p.subresource != "" {
		return c.SubResource(p.subresource).Patch(ctx, o, change)
	}
	return c.Patch(ctx, o, change)
}

// makeBootstrapToken makes the account of the bootstrap token, its permissions and its Secret. A Secret that is there
// is replaced: the token controller removes the ones whose account it does not know.
func makeBootstrapToken(ctx context.Context, c client.Client, ca []byte) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: bootstrapNamespace, Name: bootstrapAccount}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bootstrapNamespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: bootstrapBinding},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: bootstrapNamespace, Name: bootstrapAccount}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapRole},
		},
	} {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	validity := int64(tokenSeconds)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &validity}}
	if err := c.SubResource("token").Create(ctx, account, token); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: bootstrapNamespace, Name: bootstrapSecret},
		Data:       map[string][]byte{"ca.crt": ca, "token": []byte(token.Status.Token), "namespace": []byte(bootstrapNamespace)},
	}
	if err := c.Delete(ctx, secret.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return c.Create(ctx, secret)
}
