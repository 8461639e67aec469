package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base"
	"wmco/controller/base/named"
	"wmco/controller/windowsnode/record"
)

// RecordsLabel marks the ConfigMaps of records.
const RecordsLabel = "windowsmachineconfig.openshift.io/hosts"

// Records keeps the records of hosts in ConfigMaps of the operator's namespace. Its methods may be called by many
// goroutines at once.
type Records struct {
	// Live reads without a cache: what decides about a host must be current.
	Live   client.Reader
	Client client.Client
	// Cache reads from a cache of the namespace's ConfigMaps, unstructured; nil has none.
	Cache     client.Reader
	Namespace string

	// changing is held while records are changed: each change is of what was read.
	changing sync.Mutex

	// mu guards decoded: the records of each ConfigMap that was read from the cache last.
	mu      sync.Mutex
	decoded map[string]decodedRecords
	// set are all of them, damaged the errors of those that cannot be read.
	set     record.Set
	damaged error
}

// decodedRecords are the records of one ConfigMap.
type decodedRecords struct {
	uid     types.UID
	version string
	records []record.Record
	damaged error
}

// GetRecord returns the record of a host as the API server has it now.
func (r *Records) GetRecord(ctx context.Context, id record.ID) (record.Record, bool, error) {
	cm, err := r.readConfigMap(ctx, record.ConfigMapName(id))
	if err != nil {
		return record.Record{}, false, err
	}
	return r.recordInConfigMap(cm, id)
}

// recordInConfigMap returns the record of a host in its ConfigMap. One that cannot be read is an error: the host could
// be taken for another one.
func (r *Records) recordInConfigMap(cm *corev1.ConfigMap, id record.ID) (record.Record, bool, error) {
	text, ok := cm.Data[string(id)]
	if !ok {
		return record.Record{}, false, nil
	}
	have, err := record.Decode(id, text)
	if err != nil {
		return record.Record{}, false, fmt.Errorf("reading ConfigMap %s/%s: %w (fix: %s)", r.Namespace, cm.Name, err,
			r.RemoveCommand(id))
	}
	return have, true, nil
}

// RemoveCommand returns the command with which a person removes the record of a host. Its next contact is a first one.
func (r *Records) RemoveCommand(id record.ID) string {
	return fmt.Sprintf(`oc -n %s patch configmap %s --type=json -p '[{"op":"remove","path":"/data/%s"}]'`, r.Namespace,
		record.ConfigMapName(id), id)
}

// KnownNodes returns what reports whether a Node, by its name and UID, has a host: from the cache, or as the API server
// has the records now.
func (r *Records) KnownNodes(ctx context.Context, live bool) (func(name string, uid types.UID) bool, error) { //nolint:revive // layers.Publisher asks in both ways
	read := r.CachedRecords
	if live {
		read = r.CurrentRecords
	}
	all, _, err := read(ctx)
	return func(name string, uid types.UID) bool {
		_, ok := all.OfNode(name, uid)
		return ok
	}, err
}

func (r *Records) readConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	cm.Name = name
	return cm, nil
}

// LiveRecords returns all records as the API server has them now. One that cannot be read is an error.
func (r *Records) LiveRecords(ctx context.Context) (record.Set, error) {
	all, damaged, err := r.CurrentRecords(ctx)
	if err = cmp.Or(err, damaged); err != nil {
		return record.Set{}, err
	}
	return all, nil
}

// CurrentRecords is CachedRecords without the cache.
func (r *Records) CurrentRecords(ctx context.Context) (all record.Set, damaged, err error) {
	var list corev1.ConfigMapList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Namespace), client.HasLabels{RecordsLabel}); err != nil {
		return record.Set{}, nil, fmt.Errorf("listing the records of hosts: %w", err)
	}
	var records []record.Record
	var wrong []error
	for _, cm := range list.Items {
		d := r.decodeRecords(cm.Name, cm.Data)
		records, wrong = append(records, d.records...), append(wrong, d.damaged)
	}
	return record.NewSet(records...), errors.Join(wrong...), nil
}

// CachedRecords returns all records as the cache has them. Those that cannot be read are left out, and listed in damaged:
// their hosts are known to be no Nodes.
func (r *Records) CachedRecords(ctx context.Context) (all record.Set, damaged, err error) {
	list := base.NewList(base.ConfigMapKind())
	if err := r.Cache.List(ctx, list, client.InNamespace(r.Namespace), client.HasLabels{RecordsLabel},
		client.UnsafeDisableDeepCopy); err != nil {
		return record.Set{}, nil, fmt.Errorf("listing the records of hosts: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isChanged := func(u unstructured.Unstructured) bool {
		d, ok := r.decoded[u.GetName()]
		return !ok || d.uid != u.GetUID() || d.version != u.GetResourceVersion()
	}
	// as with nearly all events of Nodes
	if r.decoded != nil && len(list.Items) == len(r.decoded) && !slices.ContainsFunc(list.Items, isChanged) {
		return r.set, r.damaged, nil
	}
	now := map[string]decodedRecords{}
	for _, u := range list.Items {
		d := r.decoded[u.GetName()]
		if isChanged(u) {
			data, _, _ := unstructured.NestedStringMap(u.Object, "data")
			d = r.decodeRecords(u.GetName(), data)
			d.uid, d.version = u.GetUID(), u.GetResourceVersion()
		}
		now[u.GetName()] = d
	}
	var wrong []error
	var readable []record.Record
	for _, name := range slices.Sorted(maps.Keys(now)) {
		wrong = append(wrong, now[name].damaged)
		readable = append(readable, now[name].records...)
	}
	r.decoded, r.set, r.damaged = now, record.NewSet(readable...), errors.Join(wrong...)
	return r.set, r.damaged, nil
}

// decodeRecords reads the records of a ConfigMap.
func (r *Records) decodeRecords(name string, data map[string]string) decodedRecords {
	var d decodedRecords
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	var damaged []error
	for key := range data {
		id := record.ID(key)
		if record.ConfigMapName(id) != name {
			continue // the record of an ID is in one ConfigMap alone
		}
		have, _, err := r.recordInConfigMap(cm, id)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		d.records = append(d.records, have)
	}
	d.damaged = errors.Join(damaged...)
	return d
}

// UpdateRecord changes the record of a host, which is empty where there is none. The change may be called again with a
// newer record, while others change records too: a person, or an operator that is the leader no longer.
func (r *Records) UpdateRecord(ctx context.Context, id record.ID,
	change func(record.Record) (record.Record, error)) error {
	return r.retryOnConflict(ctx, func(ctx context.Context) error {
		cm, err := r.readConfigMap(ctx, record.ConfigMapName(id))
		if err != nil {
			return err
		}
		before, known, err := r.recordInConfigMap(cm, id)
		if err != nil {
			return err
		}
		if !known {
			before = record.New(id)
		}
		after, err := change(before)
		if err != nil || after == before {
			return err
		}
		text, err := after.Encode()
		if err != nil {
			return err
		}
		return r.patchConfigMap(ctx, cm, map[string]any{string(id): text})
	})
}

// ForgetRecord removes the record of a host, and its pinned key with it.
func (r *Records) ForgetRecord(ctx context.Context, id record.ID) error {
	return r.retryOnConflict(ctx, func(ctx context.Context) error {
		cm, err := r.readConfigMap(ctx, record.ConfigMapName(id))
		if err != nil {
			return err
		}
		if _, ok := cm.Data[string(id)]; !ok {
			return nil
		}
		return r.patchConfigMap(ctx, cm, map[string]any{string(id): nil})
	})
}

// ForgetUnchanged removes the record of a host that is as it was read, and reports whether it did: a host that joins again since then keeps
// its pinned key and its name.
func (r *Records) ForgetUnchanged(ctx context.Context, was record.Record) (forgotten bool, err error) {
	err = r.retryOnConflict(ctx, func(ctx context.Context) error {
		cm, err := r.readConfigMap(ctx, record.ConfigMapName(was.ID()))
		if err != nil {
			return err
		}
		now, known, err := r.recordInConfigMap(cm, was.ID())
		if forgotten = err == nil && known && now == was; !forgotten {
			return err
		}
		return r.patchConfigMap(ctx, cm, map[string]any{string(was.ID()): nil})
	})
	return forgotten && err == nil, err
}

// retryOnConflict makes a change of a ConfigMap, again and again while others change it.
func (r *Records) retryOnConflict(ctx context.Context, do func(context.Context) error) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	pauses := wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 1} // 7 s in all
	return retry.OnError(pauses, apierrors.IsConflict, func() error { return do(ctx) })
}

// patchConfigMap changes a ConfigMap as it was read: the resourceVersion makes the API server refuse the patch if it
// has changed since. One that does not exist is applied first: so the permission to create it is one for its name
// alone.
func (r *Records) patchConfigMap(ctx context.Context, cm *corev1.ConfigMap, data map[string]any) error {
	if cm.UID == "" {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: cm.Name,
			Labels: map[string]string{RecordsLabel: "true"}}}
		if err := named.CreateIfAbsent(ctx, r.Client, cm); err != nil {
			return err
		}
		if len(cm.Data) > 0 {
			return apierrors.NewConflict(corev1.Resource("configmaps"), cm.Name,
				errors.New("it was created at the same time"))
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion},
		"data": data})
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsConflict(err) {
			return err
		}
		return fmt.Errorf("writing ConfigMap %s: %w", cm.Name, err)
	}
	return nil
}
