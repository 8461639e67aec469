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
	// Expected are the types of the conditions that the operator's writers always give. Until all are there, the object
	// is not Ready.
	Expected []string
	// AddPage adds to the message of a condition that is False the page that explains its reason (published.Pages); nil
	// adds none.
	AddPage func(message, reason string, most int) string
}

// maxConditionMessage is how many bytes the message of a condition may have (metav1.Condition).
const maxConditionMessage = 32768

// maxConflicts is how often a write is repeated because another writer was faster.
const maxConflicts = 5

// WriteConditions writes all conditions of this owner. It writes nothing and returns no error where the cluster does
// not serve the kind: then the conditions are in events alone, which the controller of rollouts reports.
func (w *Writer) WriteConditions(ctx context.Context, conditions []metav1.Condition) error {
	err := w.WriteStatus(ctx, Status{Conditions: conditions})
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// WriteStatus makes the object say this, and sums up what all writers say (Ready, Progressing, Degraded). It writes
// nothing that is there already. Where the cluster does not serve the kind, the error is one that meta.IsNoMatchError
// knows. The times of conditions are set by WriteStatus: a condition keeps its time while its status stays.
func (w *Writer) WriteStatus(ctx context.Context, s Status) error {
	for range maxConflicts - 1 {
		if err := w.writeOnce(ctx, s); !apierrors.IsConflict(err) {
			return err
		}
	}
	return w.writeOnce(ctx, s)
}

func (w *Writer) writeOnce(ctx context.Context, s Status) error {
	have, err := w.currentObject(ctx)
	if err != nil {
		return err
	}
	before, err := statusOf(have)
	if err != nil {
		return err
	}
	s = w.settledStatus(s, before, have.GetGeneration())
	if s.isAlreadyIn(before) {
		return nil
	}
	next := emptyObject(w.Namespace)
	// Of the version that the summary is about: another writer may have changed it since.
	next.SetResourceVersion(have.GetResourceVersion())
	if next.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&s); err != nil {
		return err
	}
	if err := w.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(next), client.FieldOwner(w.Owner),
		client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the status of %s (fix: if its definition is of an earlier version, apply deploy/crd): %w", Kind, err)
	}
	return nil
}

// currentObject returns the object, which is created if there is none.
func (w *Writer) currentObject(ctx context.Context) (*unstructured.Unstructured, error) {
	have := emptyObject(w.Namespace)
	err := w.Live.Get(ctx, client.ObjectKeyFromObject(have), have)
	switch {
	case meta.IsNoMatchError(err):
		return nil, err
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading %s: %w", Kind, err)
	case err == nil:
		return have, nil
	}
	have = emptyObject(w.Namespace)
	if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(have), client.FieldOwner(w.Owner),
		client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("creating %s: %w", Kind, err)
	}
	return have, nil
}

// Read returns the status of all writers; nothing where there is no object yet. Where the cluster does not serve the
// kind, the error is one that meta.IsNoMatchError knows.
func Read(ctx context.Context, live client.Reader, namespace string) (Status, error) {
	have := emptyObject(namespace)
	switch err := live.Get(ctx, client.ObjectKeyFromObject(have), have); {
	case apierrors.IsNotFound(err):
		return Status{}, nil
	case err != nil:
		return Status{}, fmt.Errorf("reading %s: %w", Kind, err)
	}
	return statusOf(have)
}

func emptyObject(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(statusKind())
	u.SetNamespace(namespace)
	u.SetName(Name)
	return u
}

// statusOf returns the status of the object.
func statusOf(u *unstructured.Unstructured) (Status, error) {
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

// settledStatus returns the status in the form in which it is written, with the summary of all conditions.
func (w *Writer) settledStatus(s, before Status, generation int64) Status {
	s.Refused = slices.Clone(s.Refused)
	slices.SortFunc(s.Refused, func(a, b Refused) int { return strings.Compare(a.Node, b.Node) })
	s.Refused = s.Refused[:min(len(s.Refused), MaxRefused)]
	s.Hosts = SortHosts(s.Hosts)
	// before they are summed up: each writer sums up what the others have written
	s.Conditions = w.withPages(s.Conditions)
	conditions := append(slices.Clone(s.Conditions),
		summarizeConditions(mergeConditions(s.Conditions, before.Conditions), s.withCounts(before), w.Expected)...)
	for i, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(w.Now().Truncate(time.Second))
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		conditions[i] = c
	}
	s.Conditions = conditions
	return s
}

// withPages returns the conditions with the pages that explain those which are False.
func (w *Writer) withPages(conditions []metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	for i, c := range conditions {
		if w.AddPage != nil && c.Status == metav1.ConditionFalse {
			conditions[i].Message = w.AddPage(c.Message, c.Reason, maxConditionMessage)
		}
	}
	return conditions
}

// mergeConditions returns the conditions of all writers, in an order that does not depend on who writes.
func mergeConditions(own, before []metav1.Condition) []metav1.Condition {
	all := slices.Clone(own)
	for _, c := range before {
		if meta.FindStatusCondition(own, c.Type) == nil {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return all
}

// withCounts returns the numbers and hosts of the writer that gives them.
func (s Status) withCounts(before Status) Status {
	if s.Nodes == nil {
		s.Nodes = before.Nodes
	}
	if s.HostsWaiting == nil {
		s.Hosts, s.HostsWaiting = before.Hosts, before.HostsWaiting
	}
	return s
}

// isAlreadyIn reports whether the object has this already. It may have conditions of other writers.
func (s Status) isAlreadyIn(before Status) bool {
	for _, c := range s.Conditions {
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old == nil ||
			!apiequality.Semantic.DeepEqual(*old, c) {
			return false
		}
	}
	same := s.Nodes == nil || apiequality.Semantic.DeepEqual(s.Nodes, before.Nodes) &&
		apiequality.Semantic.DeepEqual(s.Refused, before.Refused)
	return same && (s.HostsWaiting == nil || apiequality.Semantic.DeepEqual(s.HostsWaiting, before.HostsWaiting) &&
		apiequality.Semantic.DeepEqual(s.Hosts, before.Hosts))
}
