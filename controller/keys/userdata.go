package keys

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/render/machines"
)

// UserDataSecrets returns the Secrets with the user data of new Machines, one for each namespace. Platforms whose
// Machines are not made by the cluster have none. The same platform and key give the same bytes. A Secret that differs
// is replaced; only another key (Key.PublicKeyHash), never another text, is a reason to replace Machines.
func UserDataSecrets(p bundle.Platform, k Key, namespaces []string) ([]corev1.Secret, error) {
	if !slices.Contains(machines.Platforms(), p) {
		return nil, nil
	}
	text, err := machines.UserData(p, k.PublicKey())
	if err != nil {
		return nil, fmt.Errorf("making user data: %w", err)
	}
	var list []corev1.Secret
	for _, namespace := range namespaces {
		list = append(list, corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machines.UserDataSecret},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{machines.UserDataKey: []byte(text)},
		})
	}
	return list, nil
}
