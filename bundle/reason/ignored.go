package reason

// Reasons of findings, and of the condition NodeSettingsFollowed, about what a cluster asks of its nodes and Windows nodes do not do.
const (
	ClusterImagePolicyIgnored           = "ClusterImagePolicyIgnored"
	ImagePolicyIgnored                  = "ImagePolicyIgnored"
	CRIOCredentialProviderConfigIgnored = "CRIOCredentialProviderConfigIgnored"
	CredentialProviderIgnored           = "CredentialProviderIgnored"
	KubeletConfigIgnored                = "KubeletConfigIgnored"
	ContainerRuntimeConfigIgnored       = "ContainerRuntimeConfigIgnored"
	MachineConfigFilesIgnored           = "MachineConfigFilesIgnored"
	NodeDisruptionPolicyIgnored         = "NodeDisruptionPolicyIgnored"
	ForeignLayersFetched                = "ForeignLayersFetched"
	PinnedImageSetIgnored               = "PinnedImageSetIgnored"
)

func ignored() []Entry {
	return []Entry{
		{ClusterImagePolicyIgnored, isWarning, "The cluster has a ClusterImagePolicy, other than `openshift`, which is for the cluster's own images. containerd on Windows nodes verifies no signatures of images.", "Nothing can make Windows nodes do so. Verify signatures where images are mirrored, or in an admission controller."},
		{ImagePolicyIgnored, isWarning, "The cluster has an ImagePolicy. containerd on Windows nodes verifies no signatures of images.", "Nothing can make Windows nodes do so. Verify signatures where images are mirrored, or in an admission controller."},
		{CRIOCredentialProviderConfigIgnored, isWarning, "The cluster has a CRIOCredentialProviderConfig with images. Kubelets of Windows nodes do not use it, so such images may not be pulled there.", "Put credentials for these registries, or for their mirrors, into the global pull secret, or into `imagePullSecrets` of the Pods or of their ServiceAccount."},
		{CredentialProviderIgnored, isInfo, "Kubelets on Linux get credentials for images from a program, as `acr-credential-provider` on Azure and `gcr-credential-provider` on Google Cloud. Windows nodes do not have it. They have `ecr-credential-provider`, on AWS.", "Nothing if no Pod of Windows nodes has an image of these registries. Otherwise put credentials for them into the global pull secret, or give the Pods or their ServiceAccount an imagePullSecret."},
		{KubeletConfigIgnored, isInfo, "A KubeletConfig selects the worker pool. Windows nodes do not follow it.", "Set the same fields in `kubelet` of windows-machine-config, where Windows nodes need them."},
		{ContainerRuntimeConfigIgnored, isInfo, "A ContainerRuntimeConfig selects the worker pool. It is for CRI-O, and Windows nodes run containerd.", "Set `containerd` or `pauseImage` of windows-machine-config, where Windows nodes need it."},
		{MachineConfigFilesIgnored, isInfo, "A MachineConfig of the worker pool has files or units that the machine-config-operator has not made itself. Windows nodes do not get them.", "Nothing if Windows nodes do not need them."},
		{NodeDisruptionPolicyIgnored, isInfo, "The cluster has a node disruption policy. What a change costs a Windows node follows from the change alone.", "Nothing. `wmco diff` shows what a change costs."},
		{PinnedImageSetIgnored, isInfo, "A PinnedImageSet of the worker pool has no label `node.openshift.io/os_id: Windows`. Its images are taken for those of Linux nodes, and Windows nodes do not pull them.", "Nothing if no Pod of Windows nodes needs them. Otherwise label the set, or put the images for Windows into a set of their own (docs/operations.md)."},
		{ForeignLayersFetched, isInfo, "A mirror set says `NeverContactSource`, and containerd fetches layers that name a URL of their own, so called foreign layers, from there before it asks any mirror. Windows base images from before 2023 have such layers at mcr.microsoft.com.", "Build images on newer base images. Where the URL is not reached, containerd goes on with the mirror, which must have the layer: mirror with foreign layers included."},
	}
}
