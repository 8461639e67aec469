package reason

// Reasons of findings about images, mirrors and the pull secret.
const (
	MirrorsRefused           = "MirrorsRefused"
	MirrorNotRepresentable   = "MirrorNotRepresentable"
	MirrorScopeWidened       = "MirrorScopeWidened"
	MirrorOrderNotKept       = "MirrorOrderNotKept"
	ExistingPathAsked        = "ExistingPathAsked"
	MirrorBlocked            = "MirrorBlocked"
	TagMirrorServesDigests   = "TagMirrorServesDigests"
	NeverWidened             = "NeverWidened"
	NeverNotKept             = "NeverNotKept"
	BlockNotRepresentable    = "BlockNotRepresentable"
	InsecureNotRepresentable = "InsecureNotRepresentable"
	AllowNotRepresentable    = "AllowNotRepresentable"
	AllowWidened             = "AllowWidened"
	PullSecretEntryInvalid   = "PullSecretEntryInvalid"
	PullSecretEntryWithheld  = "PullSecretEntryWithheld"
	CredentialsNotUsed       = "CredentialsNotUsed"
	NodeImageUnreachable     = "NodeImageUnreachable"
	NodeImageNotMirrored     = "NodeImageNotMirrored"
	PinnedImageLeftOut       = "PinnedImageLeftOut"
)

func images() []Entry {
	return []Entry{
		{MirrorsRefused, isError, "The machine-config-operator refuses the mirror sets or Image/cluster too. Linux and Windows nodes keep their last configuration.", "Correct the objects that the findings name."},
		{MirrorNotRepresentable, warningOrInfo, "A source or mirror is left out on Windows nodes, because containerd cannot express it: a wildcard, a host that cannot be a folder's name, or a mirror whose path does not end in the source's path. The finding names the place where nodes of the existing operator asked. It is an info for images that are for Linux alone, such as a release of OpenShift, which no Windows node pulls.", "Nothing if it is an info. Otherwise use a separate source for each registry, and mirrors that end in the source's path: `<registry>/<any path>/<source path>`. Until then, `mirrors.existingPaths: true` asks that place."},
		{MirrorScopeWidened, warningOrInfo, "Mirrors for a part of a registry are used for every image of the registry, because containerd configures whole registries. Sources whose mirrors are all left out are not named. It is a warning where a mirror for tags is the top of a registry that, by the mirror sets, has more than copies: an image that is pulled by tag may be another one there.", "Nothing if it is an info. Otherwise mirror to a path that has nothing but copies, such as `<registry>/<source registry>/<source path>`, or pull by digest and use an ImageDigestMirrorSet."},
		{MirrorOrderNotKept, isWarning, "The sources on one registry list their mirrors in different orders; containerd has one order per registry.", "Use the same order for all sources on the registry."},
		{ExistingPathAsked, isInfo, "With `mirrors.existingPaths: true`, a place is asked that no mirror names, because nodes of the existing operator asked there.", "Copy what only that place has to the mirror, then remove the setting."},
		{MirrorBlocked, isInfo, "A mirror is left out because its registry is blocked, or is a source that must never be contacted.", "Unblock the mirror's registry, or remove the mirror."},
		{TagMirrorServesDigests, isInfo, "Mirrors of an ImageTagMirrorSet are used for pulls by digest as well; containerd cannot tell the two apart.", "Nothing: a digest is verified wherever the image comes from."},
		{NeverWidened, isWarning, "NeverContactSource is set for a part of a registry, or for all of it but a part. Windows nodes contact no part of it.", "Mirror everything that Windows nodes pull from the registry. What else helps depends on how the sources lie inside each other; the finding says it."},
		{NeverNotKept, warningOrInfo, "Windows nodes may contact a source in spite of NeverContactSource. It is an info for images that are for Linux alone, which no Windows node pulls.", "Nothing if it is an info. Otherwise set the policy for the whole registry, or `mirrors.partialNever: Closed`; use a separate source for each registry."},
		{BlockNotRepresentable, isWarning, "An entry of blockedRegistries is not blocked on Windows nodes, because it is not a whole registry.", "Block the whole registry by its name."},
		{InsecureNotRepresentable, isWarning, "An entry of insecureRegistries has no effect, or applies to mirrors only, because it is not a whole registry.", "Name the whole registry, or install its CA."},
		{AllowNotRepresentable, isWarning, "An entry of allowedRegistries cannot be expressed on Windows nodes. The registries that only this entry allows are blocked; with `mirrors.partialNever: Open`, registries without mirrors and without an entry of their own stay allowed.", "Name each allowed registry."},
		{AllowWidened, isWarning, "An entry of allowedRegistries allows a part of a registry or one image, and Windows nodes may use all of the registry.", "Nothing, if the rest of the registry may be used."},
		{PullSecretEntryInvalid, isWarning, "An entry of the pull secret, or all of it, cannot be used. Invalid entries are skipped; the others are not affected.", "Write the entry as `{\"auth\": \"<base64 of user:password>\"}`."},
		{PullSecretEntryWithheld, isInfo, "An entry of the pull secret is for a registry that has mirrors. Kubelets of Windows nodes do not get it, because containerd sends the credentials that it gets for a registry to its mirrors too. The mirrors are used with their own entries.", "Nothing if Pods on Windows nodes find these images at the mirrors. Otherwise give the Pods an `imagePullSecret`; containerd sends that to the mirrors as well."},
		{CredentialsNotUsed, isWarning, "An entry of the pull secret is not used, because containerd has one set of credentials for an endpoint.", "Use one account that may read all mirrors in the endpoint."},
		{NodeImageUnreachable, errorOrWarning, "The pause image cannot be pulled from anywhere, so no pod can start. It is an error for `wmco validate` and golden folders, and for `wmco diff` in a change that adds it. The operator has it as a warning, and holds such a change until it is confirmed ([operations.md](operations.md#changes-that-are-held)).", "Allow or mirror its registry, or set `pauseImage` in windows-machine-config."},
		{NodeImageNotMirrored, isInfo, "The cluster has mirrors, but none of them has the pause image. A disconnected node cannot start pods.", "Mirror the image with an ImageTagMirrorSet, or set `pauseImage` to a digest that an ImageDigestMirrorSet covers."},
		{PinnedImageLeftOut, isWarning, "An image of a PinnedImageSet is not pulled to Windows nodes: it is not named by its registry and digest, or there are more than 500.", "Name the image as `HOST[:PORT]/NAME@sha256:DIGEST`; remove images that no Pod of Windows nodes needs."},
	}
}
