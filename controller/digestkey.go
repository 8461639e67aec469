package controller

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/bundle"
)

const (
	// keySecret holds the key of the digests of secrets, which must be the same as long as the cluster lives.
	keySecret = "windows-digest-key"
	keyField  = "key"
	keySize   = 32
)

// digestKey returns the key of secret digests, and makes it once. It is read without a cache: there is none yet.
func digestKey(ctx context.Context, m manager.Manager, namespace string) (bundle.Key, error) {
	at := client.ObjectKey{Namespace: namespace, Name: keySecret}
	for {
		var secret corev1.Secret
		err := m.GetAPIReader().Get(ctx, at, &secret)
		switch {
		case err == nil && len(secret.Data[keyField]) >= keySize:
			return secret.Data[keyField], nil
		case err == nil:
			return nil, fmt.Errorf("Secret %s has no key %q of at least %d bytes: remove the Secret, and a new one is made", at, keyField, keySize) //nolint:staticcheck // a kind is written so
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading Secret %s: %w", at, err)
		}
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // crypto/rand documents that it never fails
		secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
			Data: map[string][]byte{keyField: key}, Immutable: new(true)}
		if err := m.GetClient().Create(ctx, &secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating Secret %s: %w", at, err)
		}
	}
}
