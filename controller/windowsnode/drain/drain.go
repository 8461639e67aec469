// Package drain evicts the pods of a node, by kubectl's rules.
//
//	EvictOnce: pods of the node --kubectl's filters--> evict each once --> the pods left, and what blocks them
//
// It waits for nothing: the caller calls again until nothing is left. Pods of DaemonSets and mirror pods stay. Pods
// without a controller, and those with data in an emptyDir, are evicted too, as `kubectl drain --force
// --delete-emptydir-data` does.
package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	kubectl "k8s.io/kubectl/pkg/drain"
)

// Drainer evicts pods through one API server.
type Drainer struct {
	Client kubernetes.Interface
	// GiveUp is how long after the time at which a pod had to end it is not waited for any longer; 0 waits for ever.
	GiveUp time.Duration
}

// Left is what still runs on a node.
type Left struct {
	// Pods are the names of the pods, namespace/name, that have not ended.
	Pods []string
	// Ending is how many of them have been told to end.
	Ending int
	// Blocked has for each pod that may not be evicted now what forbids it: a PodDisruptionBudget, or the answer of
	// the API server.
	Blocked []string
}

// IsEmpty reports whether the node is drained.
func (l Left) IsEmpty() bool { return len(l.Pods) == 0 }

// shown is how many names a text has.
const shown = 5

// String is for people.
func (l Left) String() string {
	list, what := l.Pods, "waiting for Pods to terminate: "
	if len(l.Blocked) > 0 {
		list, what = l.Blocked, "blocked: "
	}
	text := what + strings.Join(list[:min(len(list), shown)], ", ")
	if n := len(list) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// roundLimit is how long one round may take: a kubelet makes mirror pods of its own node faster than they can be
// listed, and whoever drains it has other nodes.
const roundLimit = time.Minute

// RemainingPods returns what runs on a node, and evicts nothing.
func (d Drainer) RemainingPods(ctx context.Context, node string) (Left, error) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	pods, left, err := d.podsToEvict(ctx, node)
	for _, pod := range pods {
		left.addPod(pod)
	}
	return left, err
}

// EvictOnce evicts every pod of a node once. Pods end in their own grace period. A pod that may not be evicted, or
// whose eviction fails, keeps no other one waiting; the error is of all that failed.
func (d Drainer) EvictOnce(ctx context.Context, node string) (Left, error) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	pods, left, err := d.podsToEvict(ctx, node)
	if err != nil {
		return Left{}, err
	}
	var errs []error
	lookups := mostLookups
	for _, pod := range pods {
		if ctx.Err() != nil {
			return left, errors.Join(append(errs, ctx.Err())...)
		}
		gone, blocked, err := d.evictPod(ctx, pod, &lookups)
		errs = append(errs, err)
		if !gone {
			left.addPod(pod)
		}
		if blocked != "" {
			left.Blocked = append(left.Blocked, pod.Namespace+"/"+pod.Name+" by "+blocked)
		}
	}
	return left, errors.Join(errs...)
}

func (l *Left) addPod(pod corev1.Pod) {
	l.Pods = append(l.Pods, pod.Namespace+"/"+pod.Name)
	if pod.DeletionTimestamp != nil {
		l.Ending++
	}
}

func (d Drainer) drainHelper(ctx context.Context) *kubectl.Helper {
	return &kubectl.Helper{
		Ctx: ctx, Client: listing{d.Client}, ChunkSize: PodsAtATime, Force: true, GracePeriodSeconds: -1,
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, Out: io.Discard, ErrOut: io.Discard,
		SkipWaitForDeleteTimeoutSeconds: int(d.GiveUp.Seconds()),
	}
}

// podsToEvict returns the pods that a drain evicts, and those of which kubectl cannot say whether it does. Whoever may
// create a pod decides that, by an owner that no DaemonSet can be: such a pod stays, and keeps no other one waiting.
func (d Drainer) podsToEvict(ctx context.Context, node string) (pods []corev1.Pod, unclear Left, err error) {
	list, errs := d.drainHelper(ctx).GetPodsForDeletion(node)
	if len(errs) > 0 && (list == nil || ctx.Err() != nil) {
		return nil, Left{}, fmt.Errorf("listing the pods of node %s: %w", node, errs[0])
	}
	for _, err := range errs { // such as: cannot delete REASON: NAMESPACE/NAME
		unclear.Pods, unclear.Blocked = append(unclear.Pods, err.Error()), append(unclear.Blocked, err.Error())
	}
	return list.Pods(), unclear, nil
}

const (
	// mostLookups is of how many pods a round finds out which PodDisruptionBudgets forbid the eviction, and mostBudgets
	// how many of a namespace it looks at for each: whoever may create both in a namespace would have a round take as
	// long as it may, and the pods of others would not be evicted.
	mostLookups = 10
	mostBudgets = 20 * PodsAtATime
)

// evictPod asks for the eviction of one pod. A pod that is ending already is only waited for. Blocked names what
// forbids it. Lookups is how many more of those a round makes.
func (d Drainer) evictPod(ctx context.Context, pod corev1.Pod, lookups *int) (gone bool, blocked string, err error) {
	if pod.DeletionTimestamp != nil {
		return false, "", nil
	}
	err = d.requestEviction(ctx, pod)
	mayLookUp := *lookups > 0
	if apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) {
		*lookups--
	}
	switch {
	case err == nil:
		return false, "", nil
	case apierrors.IsNotFound(err):
		return true, "", nil
	case apierrors.IsTooManyRequests(err):
		if mayLookUp {
			blocked = d.blockingBudgets(ctx, pod)
		}
		if blocked == "" && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			blocked = "a PodDisruptionBudget"
		}
	case apierrors.IsInternalError(err) && mayLookUp:
		blocked = d.severalBudgets(ctx, pod)
	case apierrors.IsInternalError(err):
		blocked = "the API server: " + err.Error()
	case isDenied(err):
		blocked = "the API server: " + err.Error()
	}
	if blocked != "" {
		return false, blocked, nil
	}
	return false, "", fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// isDenied reports whether a request was refused for what it asks, as by an admission webhook or policy, which give
// statuses of their own (kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers, Response).
// Temporary causes are retried instead: a token that is renewed, a limit of time, and a pod that was replaced.
func isDenied(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// requestEviction makes one request. An API server that has not counted a PodDisruptionBudget yet asks for a pause of
// ten seconds (k8s.io/kubernetes, pkg/registry/core/pod/storage/eviction.go), which client-go would make ten times
// while the other pods wait: the next round asks again instead.
func (d Drainer) requestEviction(ctx context.Context, pod corev1.Pod) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return d.Client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(eviction).MaxRetries(0).Do(ctx).Error()
}

// budgets returns the PodDisruptionBudgets of a pod, by name.
func (d Drainer) budgets(ctx context.Context, pod corev1.Pod) ([]policyv1.PodDisruptionBudget, error) {
	var all []policyv1.PodDisruptionBudget
	for page, seen := "", 0; seen == 0 || page != "" && seen < mostBudgets; seen += PodsAtATime {
		list, err := d.Client.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx,
			metav1.ListOptions{Limit: PodsAtATime, Continue: page})
		if err != nil {
			return nil, err
		}
		for _, b := range list.Items {
			if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil &&
				selector.Matches(labels.Set(pod.Labels)) && len(all) < shown {
				all = append(all, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: b.Name},
					Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: b.Status.DisruptionsAllowed}})
			}
		}
		page = list.Continue
	}
	slices.SortFunc(all, func(a, b policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// blockingBudgets names the PodDisruptionBudgets of a pod that allow no disruption now; empty where none is known.
func (d Drainer) blockingBudgets(ctx context.Context, pod corev1.Pod) string {
	budgets, err := d.budgets(ctx, pod)
	if err != nil {
		return ""
	}
	var names []string
	for _, b := range budgets {
		if b.Status.DisruptionsAllowed == 0 {
			names = append(names, b.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "PodDisruptionBudget " + strings.Join(names, ", ")
}

// severalBudgets names the PodDisruptionBudgets of a pod with more than one, which API servers do not evict; empty for
// all others.
func (d Drainer) severalBudgets(ctx context.Context, pod corev1.Pod) string {
	budgets, err := d.budgets(ctx, pod)
	if err != nil || len(budgets) < 2 { //nolint:mnd // more than one
		return ""
	}
	var names []string
	for _, b := range budgets {
		names = append(names, b.Name)
	}
	return "PodDisruptionBudgets " + strings.Join(names, ", ") + ": a pod with more than one is not evicted"
}
