package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
)

// Access is the name of the Role and the RoleBinding that let nodes read layers.
const Access = "windows-node-layers"

// windows selects the Nodes that bundles are for.
func windows() client.MatchingLabels { return client.MatchingLabels{corev1.LabelOSStable: "windows"} }

// Publisher writes to one cluster.
type Publisher struct {
	// Reader may be a cache. It reads Nodes and layers as metadata only, and the Role and its binding.
	Reader client.Reader
	Client client.Client
	// Namespace is that of the operator.
	Namespace string
}

// Publish makes the cluster have what is wanted. It returns what it did, also with an error; calling it again continues.
func (p *Publisher) Publish(ctx context.Context, wanted []Wanted) (Changes, error) {
	observed, err := p.Observe(ctx)
	if err != nil {
		return Changes{}, err
	}
	c, err := Make(p.Namespace, wanted, observed)
	if err != nil {
		return Changes{}, err
	}
	return c, p.write(ctx, c)
}

// Observe reads what is published.
func (p *Publisher) Observe(ctx context.Context) (Observed, error) {
	o := Observed{Secrets: map[string]string{}}
	nodes, secrets := metadataList("Node"), metadataList("Secret")
	if err := p.Reader.List(ctx, nodes, windows()); err != nil {
		return Observed{}, fmt.Errorf("listing Windows nodes: %w", err)
	}
	for _, n := range nodes.Items {
		o.Nodes = append(o.Nodes, Node{Name: n.Name, Desired: n.Annotations[published.DesiredAnnotation], Report: n.Annotations[published.ReportAnnotation]})
	}
	if err := p.Reader.List(ctx, secrets, client.InNamespace(p.Namespace), client.HasLabels{published.LayerLabel}); err != nil {
		return Observed{}, fmt.Errorf("listing published layers: %w", err)
	}
	for _, s := range secrets.Items {
		o.Secrets[s.Name] = s.Labels[published.LayerLabel]
	}
	return o, p.observeAccess(ctx, &o)
}

func (p *Publisher) observeAccess(ctx context.Context, o *Observed) error {
	key := client.ObjectKey{Namespace: p.Namespace, Name: Access}
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	switch err := p.Reader.Get(ctx, key, &role); {
	case err == nil && slices.EqualFunc(role.Rules, rules(names(role)), sameRule):
		o.Readable = names(role)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Role %s: %w", Access, err)
	}
	switch err := p.Reader.Get(ctx, key, &binding); {
	case err == nil && binding.RoleRef == roleRef() && slices.Equal(binding.Subjects, subjects(users(binding))):
		o.Readers = users(binding)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading RoleBinding %s: %w", Access, err)
	}
	return nil
}

func metadataList(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}

// names returns what a Role of ours lists; empty for another one.
func names(r rbacv1.Role) []string {
	list := []string{}
	if len(r.Rules) == 1 {
		list = append(list, r.Rules[0].ResourceNames...)
	}
	return list
}

func users(b rbacv1.RoleBinding) []string {
	list := []string{}
	for _, s := range b.Subjects {
		list = append(list, s.Name)
	}
	return list
}

// rules let read the named Secrets and nothing else. A rule without names would allow all of them.
func rules(names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: names}}
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Verbs, b.Verbs) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && len(a.NonResourceURLs) == 0
}

func roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Access}
}

func subjects(users []string) []rbacv1.Subject {
	var list []rbacv1.Subject
	for _, u := range users {
		list = append(list, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u})
	}
	return list
}

// write makes the changes in their order. What fails for one node does not keep the others from theirs.
func (p *Publisher) write(ctx context.Context, c Changes) error {
	for _, s := range c.Create {
		if err := p.create(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range c.Check {
		if err := p.check(ctx, s); err != nil {
			return err
		}
	}
	if err := p.grant(ctx, c); err != nil {
		return err
	}
	var failed []error
	for _, node := range slices.Sorted(maps.Keys(c.Nodes)) {
		failed = append(failed, p.annotate(ctx, node, c.Nodes[node]))
	}
	for _, name := range c.Delete {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
		if err := p.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("deleting Secret %s, which no node needs: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func (p *Publisher) secret(s Secret) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: s.Name, Labels: map[string]string{published.LayerLabel: s.Label}},
		Type:       published.SecretType, Immutable: new(true), Data: map[string][]byte{published.SecretKey: s.Data},
	}
}

// create publishes one part. One that exists already is the same: its name is that of its content.
func (p *Publisher) create(ctx context.Context, s Secret) error {
	if err := p.Client.Create(ctx, p.secret(s)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", s.Name, err)
	}
	return nil
}

// check replaces a part that a node could not use, if it is not what was published: somebody deleted and created it.
func (p *Publisher) check(ctx context.Context, s Secret) error {
	var have corev1.Secret
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: s.Name}, &have)
	switch {
	case err == nil && bytes.Equal(have.Data[published.SecretKey], s.Data):
		return nil
	case err == nil:
		uid := have.UID
		if err := p.Client.Delete(ctx, &have, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s, which is not what was published: %w", s.Name, err)
		}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading Secret %s, which a node could not use: %w", s.Name, err)
	}
	return p.create(ctx, s)
}

// grant lets the nodes read the layers.
func (p *Publisher) grant(ctx context.Context, c Changes) error {
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: Access}
	if c.Readable != nil {
		if err := p.put(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules(c.Readable)}); err != nil {
			return fmt.Errorf("writing Role %s: %w", Access, err)
		}
	}
	if c.Readers != nil {
		if err := p.put(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: roleRef(), Subjects: subjects(c.Readers)}); err != nil {
			return fmt.Errorf("writing RoleBinding %s: %w", Access, err)
		}
	}
	return nil
}

// put replaces an object or creates it: the API server creates a Role or RoleBinding that is updated and does not exist. The role
// of a binding cannot be changed, so a foreign one is deleted.
func (p *Publisher) put(ctx context.Context, o client.Object) error {
	err := p.Client.Update(ctx, o)
	if !apierrors.IsInvalid(err) {
		return err
	}
	if err := p.Client.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		return err
	}
	return p.Client.Create(ctx, o)
}

// annotate tells a node what it should have.
func (p *Publisher) annotate(ctx context.Context, node, text string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{published.DesiredAnnotation: text}}})
	if err != nil {
		return err
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := p.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("publishing on Node %s: %w", node, err)
	}
	return nil
}
