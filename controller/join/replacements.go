package join

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacementsName is a ConfigMap of the operator's namespace: how many Machines of a MachineSet were replaced in a row, by its name.
const replacementsName = "windows-machine-replacements"

// Replacements count Machines that were replaced, until one of the same MachineSet joins.
type Replacements struct {
	Live      client.Reader
	Client    client.Client
	Namespace string
}

func (r Replacements) read(ctx context.Context) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: replacementsName}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", replacementsName, err)
	}
	return cm, nil
}

// count is how many there were. A value that is no number counts as too many: somebody edited it.
func (r Replacements) count(ctx context.Context, set string) (int, error) {
	cm, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	text, ok := cm.Data[set]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return replacementsInARow, nil //nolint:nilerr // see above
	}
	return n, nil
}

func (r Replacements) add(ctx context.Context, set string) error {
	n, err := r.count(ctx, set)
	if err != nil {
		return err
	}
	return r.put(ctx, set, strconv.Itoa(n+1))
}

// reset forgets them.
func (r Replacements) reset(ctx context.Context, set string) error {
	cm, err := r.read(ctx)
	if _, ok := cm.Data[set]; err != nil || !ok {
		return err
	}
	return r.put(ctx, set, nil)
}

// put changes one key of the ConfigMap as it was read, or creates it.
func (r Replacements) put(ctx context.Context, set string, value any) error {
	cm, err := r.read(ctx)
	if err != nil {
		return err
	}
	if cm.UID == "" {
		text, _ := value.(string)
		return r.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: replacementsName}, Data: map[string]string{set: text}})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion}, "data": map[string]any{set: value}})
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
}
