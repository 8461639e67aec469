package gather

import (
	"cmp"

	"wmco/controller/gather/ignored"
	"wmco/controller/gather/objects"
	"wmco/render"
)

// API groups of the inputs.
const (
	groupConfig        = "config.openshift.io"
	groupOperator      = "operator.openshift.io"
	groupMachineConfig = "machineconfiguration.openshift.io"
	groupMachine       = "machine.openshift.io"
	groupApps          = "apps"
)

// Names of objects, labels, keys, files and units that are read.
const (
	clusterName            = "cluster"
	versionName            = "version"
	workerPool             = "worker"
	renderedWorkerPrefix   = "rendered-worker-"
	controllerConfigName   = "machine-config-controller"
	operatorName           = "windows-machine-config-operator"
	exporterTLSName        = "windows-machine-config-operator-tls"
	bootstrapTokenName     = "node-bootstrapper-token"
	namespaceMCO           = "openshift-machine-config-operator"
	namespaceMachines      = "openshift-machine-api"
	labelOS                = "kubernetes.io/os"
	labelMachineOS         = "machine.openshift.io/os-id"
	labelIgnore            = "windowsmachineconfig.openshift.io/ignore"
	annotationSubnet       = "k8s.ovn.org/hybrid-overlay-node-subnet"
	annotationInstance     = "windowsmachineconfig.openshift.io/instance"
	settingsName           = "windows-machine-config"
	keyPullSecret          = ".dockerconfigjson"
	dirCredentialProviders = "/etc/kubernetes/credential-providers/"
	fileCloudConf          = "/etc/kubernetes/cloud.conf"
	unitKubelet            = "kubelet.service"
	kindPinnedImageSet     = "PinnedImageSet"
)

// WantedObjects returns what Gather reads, for a cache of the objects; an empty namespace is OperatorNamespace.
func WantedObjects(namespace string) []objects.Want {
	return wantedObjects(cmp.Or(namespace, OperatorNamespace))
}

// wantedObjects returns every object that affects a Windows node. Each is as narrow as it is read, so that the
// operator's RBAC follows from this table.
func wantedObjects(namespace string) []objects.Want {
	config := func(kind, name string) objects.Want {
		return objects.Want{Group: groupConfig, Version: "v1", Kind: kind, Names: []string{name}}
	}
	secret := func(ns, name string) objects.Want {
		return objects.Want{Version: "v1", Kind: "Secret", Namespace: ns, Names: []string{name}}
	}
	optional := func(w objects.Want) objects.Want { w.Optional = true; return w }
	return []objects.Want{
		config("Infrastructure", clusterName),
		config("Network", clusterName),
		config("Proxy", clusterName),
		config("APIServer", clusterName),
		config("Image", clusterName),
		config("ClusterVersion", versionName),
		// A cluster of plain Kubernetes, or an old one, does not serve these.
		optional(objects.Want{Group: groupConfig, Version: "v1", Kind: "ImageDigestMirrorSet", Unique: true}),
		optional(objects.Want{Group: groupConfig, Version: "v1", Kind: "ImageTagMirrorSet", Unique: true}),
		optional(objects.Want{Group: groupOperator, Version: "v1alpha1", Kind: "ImageContentSourcePolicy", Unique: true}),
		optional(objects.Want{Group: groupConfig, Version: "v1", Kind: ignored.ImagePolicyKind}),
		optional(objects.Want{
			Group: groupMachineConfig, Version: "v1", Kind: kindPinnedImageSet,
			Labels: map[string]string{ignored.LabelPinnedFor: ignored.PinnedForWindows},
		}),
		{Group: groupOperator, Version: "v1", Kind: "Network", Names: []string{clusterName}},
		{Group: groupMachineConfig, Version: "v1", Kind: "MachineConfigPool", Names: []string{workerPool}},
		{Group: groupMachineConfig, Version: "v1", Kind: "MachineConfig", NamePrefix: renderedWorkerPrefix},
		{Group: groupMachineConfig, Version: "v1", Kind: "ControllerConfig", Names: []string{controllerConfigName}},
		optional(objects.Want{
			Group: groupMachine, Version: "v1beta1", Kind: "Machine", Namespace: namespaceMachines,
			Labels: map[string]string{labelMachineOS: "Windows"},
		}),
		{Version: "v1", Kind: "Node", Labels: map[string]string{labelOS: "windows"}},
		{
			Version: "v1", Kind: "ConfigMap", Namespace: namespace,
			Names:    []string{render.InstancesConfigMap, settingsName, render.TrustedCAConfigMap},
			OnlyHere: []string{render.InstancesConfigMap, settingsName},
		},
		{Group: groupApps, Version: "v1", Kind: "Deployment", Namespace: namespace, Names: []string{operatorName}},
		secret(namespace, exporterTLSName),
		secret(namespaceMCO, bootstrapTokenName),
		secret(render.PullSecretNamespace, render.PullSecretName),
	}
}
