// Package rbac has tests alone: what an attacker who has the token of the operator's ServiceAccount can do with Secrets.
package rbac

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

var cluster = testenv.Environment{Options: controlplane.Options{Controllers: true}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const (
	operatorNamespace = "openshift-windows-machine-config-operator"
	operatorAccount   = "system:serviceaccount:" + operatorNamespace + ":windows-machine-config-operator"
	// victim is the name of a ServiceAccount in every namespace, that of a cluster administrator.
	victim = "victim"
)

// namespaces are those in which a token is wanted: with Roles of the operator, its own, and others.
func namespaces() []string {
	return []string{operatorNamespace, "openshift-machine-api", "openshift-cluster-api", "openshift-config", "openshift-machine-config-operator", "kube-system", "default"}
}

// names are those of Secrets that the operator may do something with somewhere, and one of none.
func names() []string {
	return []string{"windows-user-data", "pull-secret", "node-bootstrapper-token", "anything"}
}

// thief is an attacker who has the token of the operator's ServiceAccount.
type thief struct {
	t     *testing.T
	admin client.Client
	client.WithWatch
}

func newThief(t *testing.T) *thief {
	t.Helper()
	config := rest.CopyConfig(cluster.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorAccount, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace, "system:authenticated"}}
	stolen, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	th := &thief{t, cluster.Client(t), stolen}
	for _, namespace := range namespaces() {
		if err := th.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		th.have(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: victim}})
		th.have(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "victim-" + namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: victim}},
		})
	}
	return th
}

// have creates an object as an administrator, until the end of the test.
func (t *thief) have(o client.Object) {
	t.t.Helper()
	if err := t.admin.Create(t.t.Context(), o); err != nil {
		t.t.Fatal(err)
	}
	t.t.Cleanup(func() { t.without(o) })
}

func (t *thief) without(o client.Object) {
	if err := t.admin.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
		t.t.Error(err)
	}
}

// tokenSecret is a Secret into which a controller writes the token of the victim.
func tokenSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: victim}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// attempt is a way to have a Secret hold the token of the victim.
type attempt struct {
	name string
	// before is what an administrator has created; nil is nothing.
	before func(namespace, name string) *corev1.Secret
	try    func(ctx context.Context, c client.Client, s *corev1.Secret) error
}

func attempts() []attempt {
	opaque := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"userData": []byte("x")}}
	}
	// other is a Secret of another ServiceAccount's token.
	other := func(namespace, name string) *corev1.Secret {
		s := tokenSecret(namespace, name)
		s.Annotations[corev1.ServiceAccountNameKey] = "default"
		return s
	}
	patch := func(kind types.PatchType, change func(*corev1.Secret) any) func(context.Context, client.Client, *corev1.Secret) error {
		return func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			text, err := json.Marshal(change(s))
			if err != nil {
				return err
			}
			return c.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}, client.RawPatch(kind, text))
		}
	}
	whole := func(s *corev1.Secret) any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": s.Name, "annotations": s.Annotations}, "type": s.Type}
	}
	annotated := func(s *corev1.Secret) any {
		return map[string]any{"metadata": map[string]any{"annotations": s.Annotations}}
	}
	apply := func(ctx context.Context, c client.Client, s *corev1.Secret) error {
		text, err := json.Marshal(whole(s))
		if err != nil {
			return err
		}
		return c.Patch(ctx, s, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("thief"), client.ForceOwnership)
	}
	update := func(ctx context.Context, c client.Client, s *corev1.Secret) error { return c.Update(ctx, s) }
	replace := func(ctx context.Context, c client.Client, s *corev1.Secret) error {
		if err := c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}); err != nil {
			return err
		}
		return c.Create(ctx, s)
	}
	return []attempt{
		{"create", nil, func(ctx context.Context, c client.Client, s *corev1.Secret) error { return c.Create(ctx, s) }},
		{"create with a name of the API server", nil, func(ctx context.Context, c client.Client, s *corev1.Secret) error {
			s.GenerateName, s.Name = s.Name, ""
			return c.Create(ctx, s)
		}},
		{"apply", nil, apply},
		{"update what does not exist", nil, update},
		{"apply over a Secret of another type", opaque, apply},
		{"update a Secret of another type", opaque, update},
		{"merge-patch a Secret of another type", opaque, patch(types.MergePatchType, whole)},
		{"delete and create", opaque, replace},
		{"apply over a token", other, apply},
		{"update a token", other, update},
		{"merge-patch a token", other, patch(types.MergePatchType, annotated)},
		{"patch a token", other, patch(types.StrategicMergePatchType, annotated)},
		{"patch a token by its path", other, patch(types.JSONPatchType, func(*corev1.Secret) any {
			return []map[string]any{{"op": "replace", "path": "/metadata/annotations/kubernetes.io~1service-account.name", "value": victim}}
		})},
		{"delete and create a token", other, replace},
	}
}

// token is what the thief can read of a Secret, in any way.
func (t *thief) token(namespace, name string) string {
	var s corev1.Secret
	if err := t.Get(t.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err == nil && len(s.Data[corev1.ServiceAccountTokenKey]) > 0 {
		return string(s.Data[corev1.ServiceAccountTokenKey])
	}
	one := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	for _, options := range [][]client.ListOption{{client.InNamespace(namespace), one}, {one}, {client.InNamespace(namespace)}, {}} {
		var list corev1.SecretList
		if err := t.List(t.t.Context(), &list, options...); err == nil {
			for _, s := range list.Items {
				if s.Namespace == namespace && s.Name == name && len(s.Data[corev1.ServiceAccountTokenKey]) > 0 {
					return string(s.Data[corev1.ServiceAccountTokenKey])
				}
			}
		}
		if token := t.watched(namespace, name, options); token != "" {
			return token
		}
	}
	return ""
}

// watched is what a watch shows.
func (t *thief) watched(namespace, name string, options []client.ListOption) string {
	w, err := t.Watch(t.t.Context(), &corev1.SecretList{}, options...)
	if err != nil {
		return ""
	}
	defer w.Stop()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return ""
			}
			if s, ok := e.Object.(*corev1.Secret); ok && s.Namespace == namespace && s.Name == name && len(s.Data[corev1.ServiceAccountTokenKey]) > 0 {
				return string(s.Data[corev1.ServiceAccountTokenKey])
			}
		case <-time.After(time.Second):
			return ""
		}
	}
}

// is returns who a token is.
func (t *thief) is(token string) string {
	config := rest.AnonymousClientConfig(cluster.Config(t.t))
	config.BearerToken = token
	review := &authenticationv1.SelfSubjectReview{}
	if err := testenv.NewClient(t.t, config).Create(t.t.Context(), review); err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}

// steals tries one way in one place. It returns who the thief is afterwards, and how the attempt ended.
func (t *thief) steals(a attempt, namespace, name string) (who string, err error) {
	if a.before != nil {
		before := a.before(namespace, name)
		if err := t.admin.Create(t.t.Context(), before); err != nil {
			t.t.Fatal(err)
		}
		defer t.without(before)
	}
	s := tokenSecret(namespace, name)
	if err := a.try(t.t.Context(), t, s); err != nil {
		return "", err
	}
	defer t.without(s)
	// The controller fills it; a Secret that the thief cannot read is not read in the end either.
	err = testenv.Eventually(t.t.Context(), "the token", func() bool {
		var filled corev1.Secret
		return t.admin.Get(t.t.Context(), client.ObjectKeyFromObject(s), &filled) == nil && len(filled.Data[corev1.ServiceAccountTokenKey]) > 0
	})
	if err != nil {
		t.t.Fatal(err)
	}
	if token := t.token(s.Namespace, s.Name); token != "" {
		return t.is(token), nil
	}
	return "", nil
}

// refused reports whether RBAC, the policy or the API server's own rules (a type never changes) refused a request.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || isPolicy(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "field is immutable")
}

func isPolicy(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'windows-machine-config-operator'")
}

// robs tries every way in every namespace with every name.
func (t *thief) robs() {
	t.t.Helper()
	for _, namespace := range namespaces() {
		for _, name := range names() {
			for _, a := range attempts() {
				who, err := t.steals(a, namespace, name)
				switch {
				case who != "":
					t.t.Errorf("%s of %s in %s: the thief is %s", a.name, name, namespace, who)
				case err == nil:
					t.t.Errorf("%s of %s in %s is allowed, although the token cannot be read", a.name, name, namespace)
				case !refused(err):
					t.t.Errorf("%s of %s in %s: %v", a.name, name, namespace, err)
				}
			}
		}
		request := &authenticationv1.TokenRequest{}
		if err := t.SubResource("token").Create(t.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: victim}}, request); !apierrors.IsForbidden(err) {
			t.t.Errorf("a token of %s in %s is issued on request: %v", victim, namespace, err)
		}
	}
}

// awaitPolicy waits until the policy is in effect: an API server learns of one a moment later.
func (t *thief) awaitPolicy() {
	t.t.Helper()
	err := testenv.Eventually(t.t.Context(), "the policy to be in effect", func() bool {
		return isPolicy(t.Create(t.t.Context(), tokenSecret(operatorNamespace, "awaited"), client.DryRunAll))
	})
	if err != nil {
		t.t.Fatal(err)
	}
}

// loadManifests loads the installed manifests.
func loadManifests(t *testing.T) {
	t.Helper()
	cluster.Load(t, ".", filepath.Join("..", "admission"), filepath.Join("..", "cluster-api", "machines.yaml"), filepath.Join("..", "cluster-api", "user-data.yaml"))
}

// TestTheOperatorsTokenIsNoOtherAccounts: whoever has the token of the operator's account gets the token of no other one.
func TestTheOperatorsTokenIsNoOtherAccounts(t *testing.T) {
	loadManifests(t)
	th := newThief(t)
	th.awaitPolicy()
	th.robs()
}
