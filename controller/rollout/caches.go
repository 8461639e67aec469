package rollout

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
)

// publishedObjects are the kinds that the publisher writes besides Nodes. Of Secrets only the metadata is kept in
// memory.
func publishedObjects() []client.Object {
	return []client.Object{base.MetadataOf(base.SecretKind()), &rbacv1.Role{}, &rbacv1.RoleBinding{}}
}

// newLayerCache caches the published layers, apart from the Secrets that are inputs: a cache has one selector for a kind.
func newLayerCache(m manager.Manager, namespace string) (kubecluster.Cluster, error) {
	labeled, err := labels.NewRequirement(published.LayerLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	only := map[string]cache.Config{namespace: {}}
	named := cache.ByObject{Namespaces: only, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, layers.Access)}
	secrets, err := kubecluster.New(m.GetConfig(), func(o *kubecluster.Options) {
		o.Scheme, o.Logger, o.HTTPClient = m.GetScheme(), m.GetLogger(), m.GetHTTPClient()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return m.GetRESTMapper(), nil }
		o.Cache = cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}:      {Namespaces: only, Label: labels.NewSelector().Add(*labeled)},
				&rbacv1.Role{}:        named,
				&rbacv1.RoleBinding{}: named,
			},
			DefaultTransform: cache.TransformStripManagedFields(), NewInformer: base.NewInformer,
		}
	})
	if err != nil {
		return nil, err
	}
	return secrets, m.Add(secrets)
}

// newKeyCache caches the metadata of the Secret with the keys that sign, apart from the Secrets that are inputs.
func newKeyCache(m manager.Manager, namespace string) (cache.Cache, error) {
	secret := base.MetadataOf(base.SecretKind())
	only := cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, signing.SecretName),
		Namespaces: map[string]cache.Config{namespace: {}}}
	keys, err := cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(),
		HTTPClient: m.GetHTTPClient(), NewInformer: base.NewInformer,
		ByObject: map[client.Object]cache.ByObject{secret: only}})
	if err != nil {
		return nil, err
	}
	return keys, m.Add(keys)
}
