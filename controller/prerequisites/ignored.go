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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base/conditions"
)

// NodeSettingsFollowed is the type of the condition that the cluster asks nothing of its nodes that Windows nodes do not do.
const NodeSettingsFollowed = "NodeSettingsFollowed"

// Reasons of NodeSettingsFollowed: what Windows nodes ignore. With several of them, it is the first one in this order, and the message has all.
const (
	ReasonClusterImagePolicyIgnored     = "ClusterImagePolicyIgnored"
	ReasonImagePolicyIgnored            = "ImagePolicyIgnored"
	ReasonCredentialProviderIgnored     = "CRIOCredentialProviderConfigIgnored"
	ReasonKubeletConfigIgnored          = "KubeletConfigIgnored"
	ReasonContainerRuntimeConfigIgnored = "ContainerRuntimeConfigIgnored"
	ReasonMachineConfigIgnored          = "MachineConfigFilesIgnored"
	ReasonDisruptionPolicyIgnored       = "NodeDisruptionPolicyIgnored"
)

const (
	groupConfig        = "config.openshift.io"
	groupMachineConfig = "machineconfiguration.openshift.io"
	groupOperator      = "operator.openshift.io"

	workerPool = "worker"
	// workerLabel is what the machine-config-operator gives its pool worker, for selectors of KubeletConfigs.
	workerLabel = "pools.operator.machineconfiguration.openshift.io/worker"
	// roleLabel selects the MachineConfigs of a pool; those that the machine-config-operator itself has made have the annotation generatedBy.
	roleLabel   = "machineconfiguration.openshift.io/role"
	generatedBy = "machineconfiguration.openshift.io/generated-by-controller-version"
	// releasePolicy is the ClusterImagePolicy of the cluster's own release images. Windows nodes pull none of them.
	releasePolicy = "openshift"
)

// recheckIgnored is how often it is looked for what Windows nodes ignore. These objects change seldom, and nothing is decided by them.
const recheckIgnored = 10 * time.Minute

// ignoredKind is a kind whose objects ask something of nodes that Windows nodes do not do.
type ignoredKind struct {
	reason string
	kind   schema.GroupVersionKind
	// labels select the objects that are listed; empty is all.
	labels client.MatchingLabels
	// counts reports whether an object asks something of workers; pool are the labels of the worker pool.
	counts func(o unstructured.Unstructured, pool labels.Set) bool
	// instead says what Windows nodes do.
	instead string
}

func kindIn(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// ignoredKinds returns all of them, the most important first.
func ignoredKinds() []ignoredKind {
	always := func(unstructured.Unstructured, labels.Set) bool { return true }
	return []ignoredKind{
		{
			reason: ReasonClusterImagePolicyIgnored, kind: kindIn(groupConfig, "v1", "ClusterImagePolicy"), instead: "containerd on Windows nodes does not verify signatures of images",
			counts: func(o unstructured.Unstructured, _ labels.Set) bool { return o.GetName() != releasePolicy },
		},
		{reason: ReasonImagePolicyIgnored, kind: kindIn(groupConfig, "v1", "ImagePolicy"), instead: "containerd on Windows nodes does not verify signatures of images", counts: always},
		{
			reason: ReasonCredentialProviderIgnored, kind: kindIn(groupConfig, "v1alpha1", "CRIOCredentialProviderConfig"), instead: "kubelets on Windows nodes use no credential provider of CRI-O",
			counts: func(o unstructured.Unstructured, _ labels.Set) bool { return hasItems(o, "spec", "matchImages") },
		},
		{reason: ReasonKubeletConfigIgnored, kind: kindIn(groupMachineConfig, "v1", "KubeletConfig"), instead: "Windows nodes take the setting kubelet of windows-machine-config instead", counts: selectsPool},
		{reason: ReasonContainerRuntimeConfigIgnored, kind: kindIn(groupMachineConfig, "v1", "ContainerRuntimeConfig"), instead: "Windows nodes run containerd, and take the settings containerd and pauseImage of windows-machine-config instead", counts: selectsPool},
		{
			reason: ReasonMachineConfigIgnored, kind: kindIn(groupMachineConfig, "v1", "MachineConfig"), labels: client.MatchingLabels{roleLabel: workerPool}, instead: "their files and units are not written to Windows nodes",
			counts: func(o unstructured.Unstructured, _ labels.Set) bool {
				return o.GetAnnotations()[generatedBy] == "" && (hasItems(o, "spec", "config", "storage", "files") || hasItems(o, "spec", "config", "systemd", "units"))
			},
		},
		{
			reason: ReasonDisruptionPolicyIgnored, kind: kindIn(groupOperator, "v1", "MachineConfiguration"), instead: "what a change costs a Windows node follows from the change alone: wmco diff shows it",
			counts: func(o unstructured.Unstructured, _ labels.Set) bool {
				policy := []string{"spec", "nodeDisruptionPolicy"}
				return hasItems(o, append(policy, "files")...) || hasItems(o, append(policy, "units")...) || hasItems(o, append(policy, "sshkey", "actions")...)
			},
		},
	}
}

// hasItems reports whether there is a list at the path that is not empty.
func hasItems(o unstructured.Unstructured, path ...string) bool {
	list, found, err := unstructured.NestedSlice(o.Object, path...)
	return err == nil && found && len(list) > 0
}

// selectsPool reports whether the selector of a KubeletConfig or ContainerRuntimeConfig selects the worker pool. Without a selector it is for no
// pool (github.com/openshift/api, machineconfiguration/v1).
func selectsPool(o unstructured.Unstructured, pool labels.Set) bool {
	field, found, err := unstructured.NestedMap(o.Object, "spec", "machineConfigPoolSelector")
	if err != nil || !found {
		return false
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(field, &s) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && selector.Matches(pool)
}

// ignoredCondition says what the cluster asks of its nodes that Windows nodes do not do.
func ignoredCondition(ctx context.Context, live client.Reader) (metav1.Condition, error) {
	pool, err := poolLabels(ctx, live)
	if err != nil {
		return metav1.Condition{}, err
	}
	var texts []string
	first := ""
	for _, k := range ignoredKinds() {
		names, err := k.listNames(ctx, live, pool)
		if err != nil {
			return metav1.Condition{}, fmt.Errorf("listing %s: %w", k.kind.Kind, err)
		}
		if len(names) == 0 {
			continue
		}
		if first == "" {
			first = k.reason
		}
		const most = 3
		texts = append(texts, fmt.Sprintf("%s %s: %s", k.kind.Kind, bundle.JoinFirst(names, most, ", ", bundle.AndMore), k.instead))
	}
	if len(texts) == 0 {
		return conditions.AsExpected(NodeSettingsFollowed), nil
	}
	return metav1.Condition{
		Type: NodeSettingsFollowed, Status: metav1.ConditionFalse, Reason: first,
		Message: published.Shorten("Windows nodes ignore " + strings.Join(texts, "; ")),
	}, nil
}

// listNames returns the names of the objects that ask something of workers, with their namespaces, sorted. A kind that the cluster does not serve, or that
// the operator may not list, has none: an older cluster, or one where deploy/rbac is older, is judged by the rest.
func (k ignoredKind) listNames(ctx context.Context, live client.Reader, pool labels.Set) ([]string, error) {
	list, err := listKind(ctx, live, k.kind, k.labels)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list {
		if k.counts(o, pool) {
			names = append(names, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		}
	}
	slices.Sort(names)
	return names, nil
}

func listKind(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := live.List(ctx, list, options...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return list.Items, err
}

// poolLabels returns the labels of the worker pool, those that it has by default where it cannot be read.
func poolLabels(ctx context.Context, live client.Reader) (labels.Set, error) {
	pools, err := listKind(ctx, live, kindIn(groupMachineConfig, "v1", "MachineConfigPool"), client.MatchingFields{"metadata.name": workerPool})
	if err != nil {
		return nil, fmt.Errorf("reading MachineConfigPool %s: %w", workerPool, err)
	}
	for _, p := range pools {
		if p.GetName() == workerPool {
			return p.GetLabels(), nil
		}
	}
	return labels.Set{workerLabel: ""}, nil
}
