// Package ignored lists objects of a cluster that Windows nodes ignore. The operator reports them in a condition, the
// command line in findings. It reads nothing, and nothing is decided by it.
package ignored

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render/mirrors"
)

const (
	groupConfig        = "config.openshift.io"
	groupMachineConfig = "machineconfiguration.openshift.io"
	groupOperator      = "operator.openshift.io"

	// workerLabel is what the machine-config-operator gives its pool worker, for selectors of KubeletConfigs.
	workerLabel = "pools.operator.machineconfiguration.openshift.io/worker"
	// roleLabel selects the MachineConfigs of a pool; those that the machine-config-operator itself has made have the
	// annotation generatedBy.
	roleLabel   = "machineconfiguration.openshift.io/role"
	generatedBy = "machineconfiguration.openshift.io/generated-by-controller-version"
	// LabelPinnedFor is the label of PinnedImageSets for Windows nodes. Windows nodes themselves have the same one.
	LabelPinnedFor = "node.openshift.io/os_id"
	// PinnedForWindows is its value.
	PinnedForWindows = "Windows"

	// ImagePolicyKind is the kind of policies of the cluster about signatures of images.
	ImagePolicyKind = "ClusterImagePolicy"
	// ReleasePolicy is that of the cluster's own release images. Windows nodes pull none of them.
	ReleasePolicy = "openshift"
)

// WorkerPool is the MachineConfigPool whose objects are looked at.
const WorkerPool = "worker"

// Kind is a kind whose objects ask something of nodes that Windows nodes do not do.
type Kind struct {
	// Reason is that of the finding and of the condition, Severity that of the finding.
	Reason   string
	Severity bundle.Severity
	schema.GroupVersionKind
	// Labels select the objects that are listed; empty is all.
	Labels map[string]string
	// Instead is the behavior of Windows nodes, Fix what a person can do.
	Instead, Fix string
	// asks reports whether an object asks something of workers; pool are the labels of the worker pool.
	asks func(o unstructured.Unstructured, pool labels.Set) bool
}

// AsksOfNodes reports whether an object of the kind asks something of workers; pool are the labels of the worker pool.
func (k Kind) AsksOfNodes(o unstructured.Unstructured, pool labels.Set) bool {
	return labels.SelectorFromSet(k.Labels).Matches(labels.Set(o.GetLabels())) && k.asks(o, pool)
}

// DefaultPoolLabels are those of the worker pool where it cannot be read.
func DefaultPoolLabels() labels.Set { return labels.Set{workerLabel: ""} }

// WantedObjects are the objects of all kinds.
func WantedObjects() []objects.Want {
	var list []objects.Want
	for _, k := range Kinds(mirrors.HostsFiles) {
		list = append(list, objects.Want{Group: k.Group, Version: k.Version, Kind: k.Kind, Labels: k.Labels, Optional: true})
	}
	return list
}

func kindIn(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// anyObject is for kinds of which each object asks.
func anyObject(unstructured.Unstructured, labels.Set) bool { return true }

// isNotVerified is for policies that the image gateway of this mode does not apply.
func isNotVerified(mode mirrors.Mode) func(unstructured.Unstructured, labels.Set) bool {
	return func(o unstructured.Unstructured, _ labels.Set) bool {
		return mode != mirrors.Exact && o.GetName() != ReleasePolicy
	}
}

// Kinds returns all of them, the most important first: all with the mode HostsFiles.
func Kinds(mode mirrors.Mode) []Kind {
	const (
		noSignatures = "containerd on Windows nodes does not verify signatures of images"
		noNamespace  = "nothing on Windows nodes knows for which namespace an image is pulled, so policies of a namespace are not applied"
		verify       = "verify signatures where images are mirrored, or in an admission controller"
		clusterwide  = "use a ClusterImagePolicy with mirrors.mode: Exact in windows-machine-config; or " + verify
		ownURL       = "containerd downloads foreign layers from the URL in the image manifest, even with NeverContactSource"
		mirrorAll    = "none if your images have no foreign layers; otherwise rebuild them on base images from 2023 or later, or mirror the layers and block mcr.microsoft.com"
	)
	return []Kind{
		{
			Reason: reason.ClusterImagePolicyIgnored, Severity: bundle.SeverityWarning, GroupVersionKind: kindIn(groupConfig, "v1", ImagePolicyKind), Instead: noSignatures,
			Fix: "set mirrors.mode: Exact in windows-machine-config; or " + verify, asks: isNotVerified(mode),
		},
		{Reason: reason.ImagePolicyIgnored, Severity: bundle.SeverityWarning, GroupVersionKind: kindIn(groupConfig, "v1", "ImagePolicy"), Instead: noNamespace, Fix: clusterwide, asks: anyObject},
		{
			Reason: reason.CRIOCredentialProviderConfigIgnored, Severity: bundle.SeverityWarning, GroupVersionKind: kindIn(groupConfig, "v1alpha1", "CRIOCredentialProviderConfig"),
			Instead: "kubelets on Windows nodes use no credential provider of CRI-O", Fix: "put the entries of their mirrors into the global pull secret, or give the Pods imagePullSecrets that have the credentials of the mirrors under the names of these registries",
			asks: func(o unstructured.Unstructured, _ labels.Set) bool { return hasItems(o, "spec", "matchImages") },
		},
		{
			Reason: reason.KubeletConfigIgnored, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupMachineConfig, "v1", "KubeletConfig"),
			Instead: "Windows nodes take the setting kubelet of windows-machine-config instead", Fix: "set the same fields in kubelet of windows-machine-config, where Windows nodes need them", asks: selectsPool,
		},
		{
			Reason: reason.ContainerRuntimeConfigIgnored, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupMachineConfig, "v1", "ContainerRuntimeConfig"),
			Instead: "Windows nodes run containerd, and take the settings containerd and pauseImage of windows-machine-config instead", Fix: "set containerd or pauseImage of windows-machine-config, where Windows nodes need it", asks: selectsPool,
		},
		{
			Reason: reason.MachineConfigFilesIgnored, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupMachineConfig, "v1", "MachineConfig"), Labels: map[string]string{roleLabel: WorkerPool},
			Instead: "their files and units are not written to Windows nodes", Fix: "none if Windows nodes do not need them",
			asks: func(o unstructured.Unstructured, _ labels.Set) bool {
				return o.GetAnnotations()[generatedBy] == "" && (hasItems(o, "spec", "config", "storage", "files") || hasItems(o, "spec", "config", "systemd", "units"))
			},
		},
		{
			Reason: reason.PinnedImageSetIgnored, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupMachineConfig, "v1", "PinnedImageSet"), Labels: map[string]string{roleLabel: WorkerPool},
			Instead: "Windows nodes pull the images of sets with the label " + LabelPinnedFor + "=" + PinnedForWindows, Fix: "none if Windows nodes do not need the images; otherwise label the set, or put images for Windows into a set of their own",
			asks: func(o unstructured.Unstructured, _ labels.Set) bool {
				return o.GetLabels()[LabelPinnedFor] != PinnedForWindows
			},
		},
		{
			Reason: reason.NodeDisruptionPolicyIgnored, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupOperator, "v1", "MachineConfiguration"),
			Instead: "what a change costs a Windows node follows from the change alone: wmco diff shows it", Fix: "none; wmco diff shows what a change costs",
			asks: func(o unstructured.Unstructured, _ labels.Set) bool {
				policy := []string{"spec", "nodeDisruptionPolicy"}
				return hasItems(o, append(policy, "files")...) || hasItems(o, append(policy, "units")...) || hasItems(o, append(policy, "sshkey", "actions")...)
			},
		},
		{
			Reason: reason.ForeignLayersFetched, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupConfig, "v1", string(mirrors.DigestSet)), Instead: ownURL, Fix: mirrorAll,
			asks: func(o unstructured.Unstructured, _ labels.Set) bool { return hasNever(o, "imageDigestMirrors") },
		},
		{
			Reason: reason.ForeignLayersFetched, Severity: bundle.SeverityInfo, GroupVersionKind: kindIn(groupConfig, "v1", string(mirrors.TagSet)), Instead: ownURL, Fix: mirrorAll,
			asks: func(o unstructured.Unstructured, _ labels.Set) bool { return hasNever(o, "imageTagMirrors") },
		},
	}
}

// hasItems reports whether there is a list at the path that is not empty.
func hasItems(o unstructured.Unstructured, path ...string) bool {
	list, found, err := unstructured.NestedSlice(o.Object, path...)
	return err == nil && found && len(list) > 0
}

// hasNever reports whether an entry of a mirror set has NeverContactSource. containerd's fetcher tries the URLs of a
// descriptor before any host (containerd, core/remotes/docker/fetcher.go).
func hasNever(o unstructured.Unstructured, field string) bool {
	list, _, err := unstructured.NestedSlice(o.Object, "spec", field)
	if err != nil {
		return false
	}
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok && m["mirrorSourcePolicy"] == "NeverContactSource" {
			return true
		}
	}
	return false
}

// selectsPool reports whether the selector of a KubeletConfig or ContainerRuntimeConfig selects the worker pool.
// Without a selector it is for no pool (github.com/openshift/api, machineconfiguration/v1).
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
