package layers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/base/named"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// Publisher writes to one cluster.
type Publisher struct {
	// Nodes reads the Windows nodes, and Layers the Secrets of layers as metadata, the Role and its binding. Both may
	// be stale caches: from them alone, a call concludes only that nothing has to be done.
	Nodes, Layers client.Reader
	// Decoded are the Nodes of the cache; nil decodes them at each call.
	Decoded *nodelist.Cache
	// Live reads from the API server, always before access is revoked or a Secret is deleted.
	Live   client.Reader
	Client client.Client
	// Known returns a function that reports whether the operator has recorded a host for the Node with this name and UID.
	// With live, it reads from the API server, otherwise from the cache. Only these Nodes get layers.
	Known func(ctx context.Context, live bool) (func(name string, uid types.UID) bool, error)
	// Namespace is the namespace of the operator.
	Namespace string
	// Try calls do, unless it has just failed (base.Pauses). A failure of one Secret does not delay the others. If it is
	// nil, each call tries.
	Try func(ctx context.Context, what string, do func(context.Context) error) error
	// Now is the wall clock, for annotations. Elapsed is a monotonic clock for the ages of layers. If it is nil, ages are
	// those on the Secrets.
	Now     func() time.Time
	Elapsed func() time.Duration

	ages ages
	// granted is when the binding was last written.
	granted granted
	// failed are the wanted Secrets whose last write failed.
	failed map[string]bool
}

// PublishLayers publishes the wanted layers, so that each node can be told of its bundle. It returns the changes, also with
// an error; the next call continues.
func (p *Publisher) PublishLayers(ctx context.Context, wanted []Wanted) (Changes, error) {
	// Most calls find nothing to do, and make no request. Before a node is told of its bundle, its layers are looked up in
	// the cluster: the cache may still have a deleted one.
	c, o, err := p.compareWithCluster(ctx, wanted, p.Nodes, p.Layers)
	if err != nil || c.IsZero() && areAllPublished(wanted, o.Nodes) {
		return c, err
	}
	c, o, err = p.compareWithCluster(ctx, wanted, p.Nodes, p.Live)
	if err == nil && c.revokesAccess(o) {
		c, o, err = p.compareWithCluster(ctx, wanted, p.Live, p.Live)
	}
	if err != nil {
		return Changes{}, err
	}
	err = p.writeChanges(ctx, &c, o)
	return c, err
}

func (p *Publisher) compareWithCluster(ctx context.Context, wanted []Wanted, nodes, layers client.Reader) (Changes,
	Observed, error) {
	o, err := p.observeCluster(ctx, nodes, layers)
	if err != nil {
		return Changes{}, Observed{}, err
	}
	return PlanChanges(wanted, o), o, nil
}

// observeCluster reads the published state.
func (p *Publisher) observeCluster(ctx context.Context, nodes, layers client.Reader) (o Observed, err error) {
	if o.Nodes, err = p.observeNodes(ctx, nodes); err != nil {
		return Observed{}, err
	}
	secrets := metadataOf("SecretList")
	if err := layers.List(ctx, secrets, client.InNamespace(p.Namespace),
		client.HasLabels{published.LayerLabel}); err != nil {
		return Observed{}, fmt.Errorf("listing published layers: %w", err)
	}
	o.Secrets = map[string]string{}
	for _, s := range secrets.Items {
		o.Secrets[s.Name] = s.Labels[published.LayerLabel]
	}
	o.Replaced = p.observeAges(secrets.Items)
	return o, p.observeAccess(ctx, layers, &o)
}

// observeAges returns the ages of obsolete layers.
func (p *Publisher) observeAges(secrets []metav1.PartialObjectMetadata) map[string]Age {
	var now time.Duration
	if p.Elapsed != nil {
		now = p.Elapsed()
	}
	if p.ages == nil {
		p.ages = ages{}
	}
	replaced := map[string]Age{}
	for _, s := range secrets {
		if age, ok := p.ages.observeAge(s.Name, s.Annotations, now); ok {
			replaced[s.Name] = age
		}
	}
	maps.DeleteFunc(p.ages, func(name string, _ *observedAge) bool { _, ok := replaced[name]; return !ok })
	return replaced
}

// observeNodes reads Nodes. From a cache it reads whole Nodes, so that all readers share it, from the API server only their
// metadata.
func (p *Publisher) observeNodes(ctx context.Context, r client.Reader) ([]Node, error) {
	if r == p.Live {
		all, err := nodelist.ListLiveMetadata(ctx, r)
		if err != nil {
			return nil, err
		}
		return p.markKnownNodes(ctx, all, true)
	}
	all, err := p.Decoded.ListCached(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.markKnownNodes(ctx, all, false)
}

// markKnownNodes sets Known. Any kubelet can give its Node the label of Windows.
func (p *Publisher) markKnownNodes(ctx context.Context, all []windowsnode.Node, live bool) ([]Node, error) {
	isKnown, err := p.Known(ctx, live)
	if err != nil {
		return nil, fmt.Errorf("listing Windows nodes: %w", err)
	}
	nodes := make([]Node, 0, len(all))
	for _, object := range all {
		n := nodeOf(object)
		n.Known = isKnown(object.Name, object.UID)
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (p *Publisher) observeAccess(ctx context.Context, r client.Reader, o *Observed) error {
	key := client.ObjectKey{Namespace: p.Namespace, Name: Access}
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	if err := r.Get(ctx, key, &role); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Role %s: %w", Access, err)
	}
	if err := r.Get(ctx, key, &binding); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading RoleBinding %s: %w", Access, err)
	}
	o.roleVersion, o.bindingVersion = role.ResourceVersion, binding.ResourceVersion
	if o.roleVersion != "" && slices.EqualFunc(role.Rules, readRules(resourceNames(role)), sameRule) {
		o.Readable = resourceNames(role)
	}
	if o.bindingVersion != "" && binding.RoleRef == roleRef() &&
		slices.Equal(binding.Subjects, userSubjects(boundUsers(binding))) {
		o.Readers, o.Granted = boundUsers(binding), p.grantedAt(binding)
	}
	return nil
}

// granted is when a version of the binding was written.
type granted struct {
	version string
	at      time.Time
}

// grantedAt returns when the subjects of the binding were last written, from its managed fields. A cache has none of them: there the time is known only for
// the version that was last read with them.
func (p *Publisher) grantedAt(b rbacv1.RoleBinding) time.Time {
	for _, m := range b.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:subjects"`) && (p.granted.version != b.ResourceVersion || m.Time.After(p.granted.at)) {
			p.granted = granted{b.ResourceVersion, m.Time.Time}
		}
	}
	if p.granted.version != b.ResourceVersion {
		return time.Time{}
	}
	return p.granted.at
}

func nodeOf(object windowsnode.Node) Node {
	n := Node{Name: object.Name, Report: object.Report, Created: object.CreationTimestamp.Time}
	if object.DesiredError == nil {
		n.Desired = object.Desired
	}
	return n
}

func metadataOf(kind string) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: kind}}
}

// resourceNames returns the names in the rule of LayerRole; empty for another Role.
func resourceNames(r rbacv1.Role) []string {
	list := []string{}
	if len(r.Rules) == 1 {
		list = append(list, r.Rules[0].ResourceNames...)
	}
	return list
}

func boundUsers(b rbacv1.RoleBinding) []string {
	list := []string{}
	for _, s := range b.Subjects {
		list = append(list, s.Name)
	}
	return list
}

// writeChanges makes the changes in their order.
func (p *Publisher) writeChanges(ctx context.Context, c *Changes, o Observed) error {
	some := p.writeLayers(ctx, c)
	// Others could create a Secret with such a name: it does not become readable.
	c.Readable = slices.DeleteFunc(slices.Clone(c.Readable), func(name string) bool {
		return some.Lacking[name] && o.Secrets[name] == ""
	})
	failed := p.writeAges(ctx, *c, o)
	if _, err := p.tryOnce(ctx, "access to layers", func(ctx context.Context) error {
		return p.grantAccess(ctx, *c, o)
	}); err != nil {
		some.Unreadable = true
		failed = append(failed, err)
		c.Delete = nil // nodes may still read these Secrets
	}
	for _, name := range c.Delete {
		if _, err := p.tryOnce(ctx, "Secret "+name, func(ctx context.Context) error {
			return p.deleteSecrets(ctx, name)
		}); err != nil {
			failed = append(failed, err)
		}
	}
	if some.Err = errors.Join(append(failed, some.Err)...); some.Err != nil {
		return some // nodes do not depend on deletions and ages
	}
	return nil
}

// deleteSecrets deletes a part of a layer.
func (p *Publisher) deleteSecrets(ctx context.Context, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	if err := p.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s, which no node needs: %w", name, err)
	}
	return nil
}

// createSecret publishes one part. An existing Secret has the same content, because its name is a digest. Its label may be
// missing, as after the restore of a backup without labels. Without the label it would be neither found nor deleted.
func (p *Publisher) createSecret(ctx context.Context, s Secret) error {
	err := p.Client.Create(ctx, s.SecretObject(p.Namespace))
	if apierrors.IsAlreadyExists(err) {
		err = p.patchMetadata(ctx, s.Name, map[string]any{"labels": map[string]string{published.LayerLabel: s.Label}})
	}
	if err != nil {
		return fmt.Errorf("creating Secret %s: %w", s.Name, err)
	}
	return nil
}

// writeAges writes the marks and ages of replaced layers, and removes those of layers that are wanted again. Its errors do
// not prevent other changes.
func (p *Publisher) writeAges(ctx context.Context, c Changes, o Observed) []error {
	var failed []error
	note := func(names []string, annotations func(name string) map[string]any) {
		for _, name := range names {
			if _, err := p.tryOnce(ctx, "age of Secret "+name, func(ctx context.Context) error {
				return p.annotateSecret(ctx, name, annotations(name))
			}); err != nil {
				failed = append(failed, fmt.Errorf("writing the age of the layer to Secret %s: %w", name, err))
			}
		}
	}
	note(c.Replaced, func(string) map[string]any {
		return map[string]any{ReplacedAnnotation: p.Now().UTC().Format(time.RFC3339), ReplacedForAnnotation: nil}
	})
	note(c.Aged, func(name string) map[string]any {
		return map[string]any{ReplacedForAnnotation: o.Replaced[name].inSeconds()}
	})
	note(c.Restored, func(string) map[string]any {
		return map[string]any{ReplacedAnnotation: nil, ReplacedForAnnotation: nil}
	})
	return failed
}

// annotateSecret writes annotations of a Secret; a nil value removes one. A missing Secret is no error.
func (p *Publisher) annotateSecret(ctx context.Context, name string, annotations map[string]any) error {
	return client.IgnoreNotFound(p.patchMetadata(ctx, name, map[string]any{"annotations": annotations}))
}

func (p *Publisher) patchMetadata(ctx context.Context, name string, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	return p.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
}

// replaceUnusable replaces a part that a node could not use, if it differs from the published one, because another client
// deleted and created it. It reports whether it did.
func (p *Publisher) replaceUnusable(ctx context.Context, s Secret) (bool, error) {
	var have corev1.Secret
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: s.Name}, &have)
	switch {
	case err == nil && bytes.Equal(have.Data[published.SecretKey], s.Data):
		return false, nil
	case err == nil:
		uid := have.UID
		if err := p.Client.Delete(ctx, &have, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting Secret %s, which is not what was published: %w", s.Name, err)
		}
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading Secret %s, which a node could not use: %w", s.Name, err)
	}
	err = p.createSecret(ctx, s)
	return err == nil, err
}

// grantAccess writes the Role and its binding.
func (p *Publisher) grantAccess(ctx context.Context, c Changes, o Observed) error {
	if c.Readable != nil {
		role := LayerRole(p.Namespace, c.Readable)
		role.ResourceVersion = o.roleVersion
		if err := p.createOrReplace(ctx, role); err != nil {
			return fmt.Errorf("writing Role %s: %w", Access, err)
		}
	}
	if c.Readers != nil {
		binding := LayerRoleBinding(p.Namespace, c.Readers)
		binding.ResourceVersion = o.bindingVersion
		if err := p.createOrReplace(ctx, binding); err != nil {
			return fmt.Errorf("writing RoleBinding %s: %w", Access, err)
		}
	}
	return nil
}

// createOrReplace creates an object, or replaces the version that was read. A later change by another client is a conflict.
// The role of a binding cannot be changed, so a binding of another role is deleted.
func (p *Publisher) createOrReplace(ctx context.Context, o client.Object) error {
	if o.GetResourceVersion() == "" {
		return named.CreateIfAbsent(ctx, p.Client, o)
	}
	err := p.Client.Update(ctx, o)
	if !apierrors.IsInvalid(err) {
		return err
	}
	if err := p.Client.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		return err
	}
	o.SetResourceVersion("")
	return named.CreateIfAbsent(ctx, p.Client, o)
}
