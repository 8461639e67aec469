package reason

// Reasons of findings, and of the condition NodeSettingsFollowed, about what a cluster asks of its nodes and Windows
// nodes do not do.
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

func ignoredReasons() []Entry {
	return []Entry{
		{ClusterImagePolicyIgnored, isWarning, "The cluster has a ClusterImagePolicy other than `openshift`. containerd on Windows nodes verifies no image signatures.", "Set [`mirrors.mode: Exact`](mirrors.md#signatures). Or verify signatures where images are mirrored, or in an admission controller."},
		{ImagePolicyIgnored, isWarning, "Windows nodes do not apply an ImagePolicy: containerd does not know for which namespace it pulls an image.", "Use a ClusterImagePolicy with [`mirrors.mode: Exact`](mirrors.md#signatures). Or verify signatures where images are mirrored, or in an admission controller."},
		{CRIOCredentialProviderConfigIgnored, isWarning, "Windows kubelets do not use CRIOCredentialProviderConfig and may fail to pull its images.", "Put the entries of their mirrors into the global pull secret. Or give the Pods, or their ServiceAccount, `imagePullSecrets` with the mirrors' credentials under the names of these registries."},
		{CredentialProviderIgnored, isInfo, "A credential provider of the Linux kubelets is left out: it does not exist for Windows (those of AWS, Azure and Google Cloud do), needs files of Linux nodes, has a credential in a variable, or serves a registry with mirrors (which containerd would send its credentials).", "Put credentials for these registries or their mirrors into the global pull secret. Or give the Pods, or their ServiceAccount, an imagePullSecret."},
		{KubeletConfigIgnored, isInfo, "A KubeletConfig selects the worker pool. Windows nodes ignore it.", "If Windows nodes need its fields, set them in the setting [`kubelet`](settings.md#kubelet-fields)."},
		{ContainerRuntimeConfigIgnored, isInfo, "A ContainerRuntimeConfig selects the worker pool. It is for CRI-O; Windows nodes run containerd.", "If Windows nodes need it, set `containerd` or `pauseImage` of windows-machine-config."},
		{MachineConfigFilesIgnored, isInfo, "Windows nodes do not get files and units of a worker pool's MachineConfig that the machine-config-operator did not write.", "None if they do not need them."},
		{NodeDisruptionPolicyIgnored, isInfo, "Windows nodes ignore the node disruption policy: the impact depends only on the change.", "None. `wmco diff` shows the impact."},
		{PinnedImageSetIgnored, isInfo, "Windows nodes do not pull the images of a PinnedImageSet without the label `node.openshift.io/os_id: Windows`.", "If Windows Pods need them, label the set, or put them into another one ([pinned-images.md](pinned-images.md))."},
		{ForeignLayersFetched, isInfo, "Windows base images from before 2023 have foreign layers. containerd fetches these from mcr.microsoft.com first, even with `NeverContactSource`, and then from the mirrors.", "None without foreign layers. Otherwise rebuild the images on base images from 2023 or later. Or mirror the foreign layers, and block mcr.microsoft.com in the firewall."},
	}
}
