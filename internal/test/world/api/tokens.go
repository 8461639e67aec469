package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// tokens are the requests of serviceaccounts/token. A token is valid until it expires, whatever becomes of its account.
type tokens struct {
	accounts *registry.Store
	now      func() time.Time

	mu     sync.Mutex
	issued map[string]issued
}

type issued struct {
	user  user.Info
	until time.Time
}

var (
	_ rest.NamedCreater             = &tokens{}
	_ rest.GroupVersionKindProvider = &tokens{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*tokens) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
}

// New implements rest.Storage.
func (*tokens) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements rest.Storage.
func (*tokens) Destroy() {}

// defaultToken is how long a token is valid whose request does not say it, in seconds.
const defaultToken = 60 * 60

// Create implements rest.NamedCreater.
func (t *tokens) Create(ctx context.Context, name string, o runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	r, ok := o.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest object: %T", o))
	}
	found, err := t.accounts.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	account := found.(*corev1.ServiceAccount)
	r = r.DeepCopy()
	r.Name, r.Namespace = name, account.Namespace
	if r.Spec.ExpirationSeconds == nil {
		r.Spec.ExpirationSeconds = new(int64(defaultToken))
	}
	until := t.now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
	r.Status = authenticationv1.TokenRequestStatus{Token: rand.Text(), ExpirationTimestamp: metav1.NewTime(until)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued[r.Status.Token] = issued{serviceaccount.UserInfo(account.Namespace, name, string(account.UID)), until}
	return r, nil
}
