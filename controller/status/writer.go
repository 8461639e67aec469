package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writer writes the part of the status that one reconciler owns.
type Writer struct {
	// Live reads from the API server: nothing caches the object.
	Live      client.Reader
	Client    client.Client
	Namespace string
	// Owner is the field manager. Writers of different conditions have different ones.
	Owner string
	Now   func() time.Time
}

// WriteConditions writes all conditions of this owner. It writes nothing and returns no error where the cluster does not serve the kind: then the
// conditions are in events alone, which the controller of rollouts says.
func (w *Writer) WriteConditions(ctx context.Context, conditions []metav1.Condition) error {
	err := w.Write(ctx, Status{Conditions: conditions})
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// Write makes the object say this. It writes nothing that is there already. Where the cluster does not serve the kind, the error is
// one that meta.IsNoMatchError knows. The times of conditions are set by Write: a condition keeps its time while its status stays.
func (w *Writer) Write(ctx context.Context, s Status) error {
	have := object(w.Namespace)
	err := w.Live.Get(ctx, client.ObjectKeyFromObject(have), have)
	switch {
	case meta.IsNoMatchError(err):
		return err
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s: %w", Kind, err)
	case err != nil:
		have = object(w.Namespace)
		if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(have), client.FieldOwner(w.Owner), client.ForceOwnership); err != nil {
			return fmt.Errorf("creating %s: %w", Kind, err)
		}
	}
	before, err := of(have)
	if err != nil {
		return err
	}
	s = w.settled(s, before, have.GetGeneration())
	if s.isIn(before) {
		return nil
	}
	next := object(w.Namespace)
	if next.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&s); err != nil {
		return err
	}
	if err := w.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(next), client.FieldOwner(w.Owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the status of %s: %w", Kind, err)
	}
	return nil
}

// Read returns what all writers have said; nothing where there is no object yet. Where the cluster does not serve the kind, the error is
// one that meta.IsNoMatchError knows.
func Read(ctx context.Context, live client.Reader, namespace string) (Status, error) {
	have := object(namespace)
	switch err := live.Get(ctx, client.ObjectKeyFromObject(have), have); {
	case apierrors.IsNotFound(err):
		return Status{}, nil
	case err != nil:
		return Status{}, fmt.Errorf("reading %s: %w", Kind, err)
	}
	return of(have)
}

func object(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind())
	u.SetNamespace(namespace)
	u.SetName(Name)
	return u
}

// of returns the status of the object.
func of(u *unstructured.Unstructured) (Status, error) {
	text, err := u.MarshalJSON()
	if err != nil {
		return Status{}, err
	}
	return Decode(text)
}

// Decode reads the object.
func Decode(text []byte) (Status, error) {
	var o struct {
		Status Status `json:"status"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return Status{}, fmt.Errorf("reading %s: %w", Kind, err)
	}
	return o.Status, nil
}

// settled returns the status in the form in which it is written.
func (w *Writer) settled(s, before Status, generation int64) Status {
	var conditions []metav1.Condition
	for _, c := range s.Conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(w.Now().Truncate(time.Second))
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		conditions = append(conditions, c)
	}
	s.Conditions = conditions
	s.Refused = slices.Clone(s.Refused)
	slices.SortFunc(s.Refused, func(a, b Refused) int { return strings.Compare(a.Node, b.Node) })
	s.Refused = s.Refused[:min(len(s.Refused), MaxRefused)]
	return s
}

// isIn reports whether the object says this already. It may have conditions of other writers.
func (s Status) isIn(before Status) bool {
	for _, c := range s.Conditions {
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old == nil || !apiequality.Semantic.DeepEqual(*old, c) {
			return false
		}
	}
	return s.Nodes == nil || apiequality.Semantic.DeepEqual(s.Nodes, before.Nodes) && apiequality.Semantic.DeepEqual(s.Refused, before.Refused)
}
