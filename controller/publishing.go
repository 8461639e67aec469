package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/join"
	"wmco/controller/publish"
	"wmco/controller/signing"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
)

// publishing is what the publisher, and what joins hosts, need of the rest of the operator.
type publishing struct {
	wants []objects.Want
	read  join.Inputs
	say   said
	signs *signing.Keys
	// records say which Nodes have a host.
	records     *hosts.Records
	executables *join.Executables
}

// knownNodes is for publish.Publisher.Known.
func knownNodes(records *hosts.Records) func(context.Context, bool) (func(string, types.UID) bool, error) {
	return func(ctx context.Context, live bool) (func(string, types.UID) bool, error) {
		read := records.Cached
		if live {
			read = records.Current
		}
		all, _, err := read(ctx)
		return func(name string, uid types.UID) bool {
			_, ok := all.OfNode(name, uid)
			return ok
		}, err
	}
}

// addPublisher adds what publishes the bundles of all joined nodes, and gives nodes their turns.
func addPublisher(ctx context.Context, m base.Manager, o Options, p publishing) error {
	wants, read, say := p.wants, p.read, p.say
	layers, err := newLayers(m, o.Namespace)
	if err != nil {
		return err
	}
	log := o.Log.WithName("publish")
	renders, err := registerRenderCounter()
	if err != nil {
		return err
	}
	to := &publish.Publisher{Nodes: m.GetClient(), Decoded: m.Decoded, Layers: layers.GetClient(), Live: m.GetAPIReader(), Client: m.GetClient(), Known: knownNodes(p.records), Namespace: o.Namespace, Now: o.Now}
	r := &renderer{read: read, nodes: m.GetClient(), decoded: m.Decoded, told: windowsnode.VerifyWith(p.signs.Open), now: time.Now, log: log, count: renders}
	if o.Hosts != nil { // nobody copies executables otherwise
		r.executables = p.executables
	}
	r.keeper = &keeper{live: m.GetAPIReader(), namespace: o.Namespace, told: windowsnode.VerifyWith(p.signs.OpenNewest), log: log}
	again := base.NewSignal()
	e, err := addExecutor(m, o, again)
	if err != nil {
		return err
	}
	e.Notary = p.signs
	says := &teller{
		writer: &status.Writer{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Owner: operatorName + "-publish", Now: o.Now},
		nodes:  e.CachedNodes, events: m.GetEventRecorder(operatorName), log: log, now: time.Now,
		counters: say.counters, silence: o.Silence, heartbeats: o.heartbeats,
	}
	publishes := &publisher{inputs: &debouncer{now: time.Now, settle: cmp.Or(o.settle, settle)}, now: time.Now, log: log, render: r.render, publish: say.counted(to.Publish), roll: e.Run, forget: forgetConfirmations(m.GetClient(), log), tell: says.tell}
	c, err := m.NewController("publish", publishes, 1)
	if err != nil {
		return err
	}
	m.Kinds.OnChange(func() {
		publishes.inputs.changed() // what is kept of a kind that is refused now does not count
		again.Send()
	})
	for _, same := range byKind(wants) {
		watch := func() error {
			publishes.inputs.changed() // the inputs are read again, also if there is no object of the kind
			again.Send()
			return c.Watch(publishes.inputs.watch(m.GetCache(), same[0]))
		}
		if err := m.Kinds.WatchWhenServed(ctx, same, watch); err != nil {
			return err
		}
	}
	if err := c.Watch(again.Source(func(q base.Queue) { publishes.inputs.again(q) })); err != nil {
		return err
	}
	keys, err := newKeyCache(m, o.Namespace)
	if err != nil {
		return err
	}
	if err := c.Watch(publishes.inputs.watchKeys(keys)); err != nil {
		return err
	}
	for _, object := range publishedObjects() {
		if err := c.Watch(publishes.inputs.watchPublished(layers.GetCache(), object)); err != nil {
			return err
		}
	}
	return nil
}

// registerRenderCounter registers the counter of renderings.
func registerRenderCounter() (prometheus.Counter, error) {
	renders := newRenderCounter()
	if err := metrics.Registry.Register(renders); err != nil {
		var again prometheus.AlreadyRegisteredError
		if !errors.As(err, &again) {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
		renders, _ = again.ExistingCollector.(prometheus.Counter) // an operator ran in this process before
	}
	return renders, nil
}

// publishedObjects are the kinds that the publisher writes besides Nodes. Of Secrets only the metadata is kept in memory.
func publishedObjects() []client.Object {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return []client.Object{secret, &rbacv1.Role{}, &rbacv1.RoleBinding{}}
}

// newLayers caches what is published, apart from the Secrets that are inputs: a cache has one selector for a kind.
func newLayers(m manager.Manager, namespace string) (kubecluster.Cluster, error) {
	labeled, err := labels.NewRequirement(published.LayerLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	only := map[string]cache.Config{namespace: {}}
	named := cache.ByObject{Namespaces: only, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, publish.Access)}
	layers, err := kubecluster.New(m.GetConfig(), func(o *kubecluster.Options) {
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
	return layers, m.Add(layers)
}

// newKeyCache caches the metadata of the Secret with the keys that sign, apart from the Secrets that are inputs.
func newKeyCache(m manager.Manager, namespace string) (cache.Cache, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	only := cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, signing.SecretName), Namespaces: map[string]cache.Config{namespace: {}}}
	keys, err := cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient(), NewInformer: base.NewInformer, ByObject: map[client.Object]cache.ByObject{secret: only}})
	if err != nil {
		return nil, err
	}
	return keys, m.Add(keys)
}

// paced returns the configuration with the rate of requests that publishing for a thousand nodes needs: three seconds. The API server
// limits its clients by priority and fairness.
func paced(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS >= 0 {
		config.QPS, config.Burst = max(config.QPS, 300), max(config.Burst, 500)
	}
	return config
}

// byKind returns what is wanted of each kind: a kind is watched once, in all namespaces together.
func byKind(wants []objects.Want) [][]objects.Want {
	var all [][]objects.Want
	for _, w := range wants {
		i := slices.IndexFunc(all, func(same []objects.Want) bool { return base.KindOf(same[0]) == base.KindOf(w) })
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], w)
	}
	return all
}
