package prerequisites

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/base/conditions"
	"wmco/controller/gather/ignored"
	"wmco/render/mirrors"
)

// NodeSettingsFollowed is the type of the condition that the cluster asks nothing of its nodes that Windows nodes do
// not do. Its reason is that of the first kind of the table that has objects; the message has all.
const NodeSettingsFollowed = "NodeSettingsFollowed"

// recheckIgnored is how often it is looked for what Windows nodes ignore. These objects change seldom, and nothing is
// decided by them.
const recheckIgnored = 10 * time.Minute

// ignoredAtATime is how many objects of a kind are in memory: those of some kinds are in namespaces of users.
const ignoredAtATime = 50

// ignoredCondition lists settings of the cluster's nodes that Windows nodes ignore.
func ignoredCondition(ctx context.Context, live client.Reader, mode mirrors.Mode) (metav1.Condition, error) {
	pool, err := poolLabels(ctx, live)
	if err != nil {
		return metav1.Condition{}, err
	}
	var texts []string
	first := ""
	for _, k := range ignored.Kinds(mode) {
		names, err := listNames(ctx, live, k, pool)
		if err != nil {
			return metav1.Condition{}, fmt.Errorf("listing %s: %w", k.Kind, err)
		}
		if len(names) == 0 {
			continue
		}
		if first == "" {
			first = k.Reason
		}
		const most = 3
		texts = append(texts, fmt.Sprintf("%s %s: %s", k.Kind,
			bundle.JoinFirst(names, most, ", ", bundle.AndMore), k.Instead))
	}
	if len(texts) == 0 {
		return conditions.AsExpected(NodeSettingsFollowed), nil
	}
	return metav1.Condition{
		Type: NodeSettingsFollowed, Status: metav1.ConditionFalse, Reason: first,
		Message: published.Shorten("Windows nodes ignore " + strings.Join(texts, "; ")),
	}, nil
}

// listNames returns the names of the objects that ask something of workers, with their namespaces, sorted. A kind that
// the cluster does not serve, or that the operator may not list, has none: an older cluster, or one where deploy/rbac
// is older, is judged by the rest.
func listNames(ctx context.Context, live client.Reader, k ignored.Kind, pool labels.Set) ([]string, error) {
	var names []string
	for page, more := "", true; more; more = page != "" {
		list, err := listKind(ctx, live, k.GroupVersionKind, client.MatchingLabels(k.Labels),
			client.Limit(ignoredAtATime), client.Continue(page))
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if k.AsksOfNodes(o, pool) {
				names = append(names, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
			}
		}
		page = list.GetContinue()
	}
	slices.Sort(names)
	return names, nil
}

func listKind(ctx context.Context, live client.Reader, kind schema.GroupVersionKind,
	options ...client.ListOption) (*unstructured.UnstructuredList, error) {
	list := base.NewList(kind)
	err := live.List(ctx, list, options...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return &unstructured.UnstructuredList{}, nil
	}
	return list, err
}

func poolKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}
}

// poolLabels returns the labels of the worker pool, those that it has by default where it cannot be read.
func poolLabels(ctx context.Context, live client.Reader) (labels.Set, error) {
	pools, err := listKind(ctx, live, poolKind(), client.MatchingFields{"metadata.name": ignored.WorkerPool})
	if err != nil {
		return nil, fmt.Errorf("reading MachineConfigPool %s: %w", ignored.WorkerPool, err)
	}
	for _, p := range pools.Items {
		if p.GetName() == ignored.WorkerPool {
			return p.GetLabels(), nil
		}
	}
	return ignored.DefaultPoolLabels(), nil
}
