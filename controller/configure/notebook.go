package configure

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base/named"
)

// Notebook is a ConfigMap in the operator's namespace for data that no other object has.
type Notebook struct {
	Live            client.Reader
	Client          client.Client
	Namespace, Name string
}

// ReadEntries reads the ConfigMap from the API server. It has no UID if it does not exist.
func (n Notebook) ReadEntries(ctx context.Context) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := n.Live.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: n.Name}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", n.Name, err)
	}
	return cm, nil
}

// ChangeEntry changes one key of the ConfigMap as it was read, or creates it. A value of nil removes the key.
func (n Notebook) ChangeEntry(ctx context.Context, key string, value any) error {
	cm, err := n.ReadEntries(ctx)
	if err != nil {
		return err
	}
	if cm.UID == "" {
		// Without data: what another writer stored at the same time stays.
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
		if err := named.CreateIfAbsent(ctx, n.Client, cm); err != nil {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion},
		"data": map[string]any{key: value}})
	if err != nil {
		return err
	}
	return n.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
}
