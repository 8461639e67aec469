package reason

// Reasons of findings about images, mirrors and the pull secret.
const (
	MirrorsRefused           = "MirrorsRefused"
	MirrorNotRepresentable   = "MirrorNotRepresentable"
	MirrorScopeWidened       = "MirrorScopeWidened"
	MirrorOrderNotKept       = "MirrorOrderNotKept"
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

func imageReasons() []Entry {
	return []Entry{
		{MirrorsRefused, isError, "The machine-config-operator refuses the mirror sets or Image/cluster too. Linux and Windows nodes keep their last configuration.", "Correct the objects that the findings name."},
		{MirrorNotRepresentable, warningOrInfo, "containerd on Windows cannot express a source or mirror, which is left out: a wildcard, a host that cannot be a folder name, or a mirror whose path does not end in the source's path. Info for Linux-only images.", "Use a source for each registry, and mirrors like `<registry>/<any path>/<source path>`. If images are only at the existing operator's location, which the finding names, add it as a mirror. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{MirrorScopeWidened, warningOrInfo, "Mirrors for a part of a registry are used for the whole registry, because containerd configures whole registries. Warning if a mirror for tags is the top of a registry with other images, which may have the same names and tags.", "Mirror to a path that has only copies, such as `<registry>/<source registry>/<source path>`, or pull by digest and use an ImageDigestMirrorSet. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{MirrorOrderNotKept, isWarning, "Sources on one registry list their mirrors in different orders; containerd has one order.", "Use the same order for all sources on the registry. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{MirrorBlocked, isInfo, "A mirror is left out: its registry is blocked, or is a source that must never be contacted.", "Unblock the mirror's registry, or remove the mirror."},
		{TagMirrorServesDigests, isInfo, "Mirrors of an ImageTagMirrorSet serve pulls by digest too; containerd cannot tell them apart.", "Nothing: digests are verified."},
		{NeverWidened, isWarning, "NeverContactSource is set for a part of a registry, or for all but a part. Windows nodes contact no part of it.", "Mirror everything that Windows nodes pull from it; the finding has other fixes, which depend on how the sources are nested. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{NeverNotKept, warningOrInfo, "Windows nodes may contact a source in spite of NeverContactSource. Info for Linux-only images.", "Set the policy for the whole registry, or `mirrors.partialNever: Closed`; use a separate source for each registry. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{BlockNotRepresentable, isWarning, "An entry of blockedRegistries is not blocked on Windows nodes: it is not a whole registry.", "Block the whole registry by its name. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{InsecureNotRepresentable, isWarning, "An entry of insecureRegistries has no effect, or only on mirrors: it is not a whole registry.", "Name the whole registry, or install its CA. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{AllowNotRepresentable, isWarning, "Windows nodes cannot follow an entry of allowedRegistries. Registries that only it allows are blocked; with `mirrors.partialNever: Open`, registries without mirrors and entries stay allowed.", "Name each allowed registry. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{AllowWidened, isWarning, "An entry of allowedRegistries allows a part of a registry or one image; Windows nodes may use all of it.", "Nothing, if that is acceptable. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{PullSecretEntryInvalid, isWarning, "An entry of the pull secret, or all of it, is invalid and skipped.", "Write the entry as `{\"auth\": \"<base64 of user:password>\"}`."},
		{PullSecretEntryWithheld, isInfo, "Windows kubelets do not get a pull secret entry of a registry that has mirrors, because containerd would send it to the mirrors too.", "Nothing if Windows Pods find these images at the mirrors. Otherwise give the Pods an `imagePullSecret`; containerd sends that to the mirrors as well. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{CredentialsNotUsed, isWarning, "An entry of the pull secret is not used: containerd has one set of credentials for each endpoint.", "Use one account that may read all mirrors of the endpoint. [`mirrors.mode: Exact`](mirrors.md#exact-mirrors) removes the limit."},
		{NodeImageUnreachable, errorOrWarning, "The pause image cannot be pulled from anywhere, so no Pod can start. Warning for the operator, which [holds the change](held-changes.md); error for `wmco validate`, golden folders, and `wmco diff` in a change that adds it.", "Allow or mirror its registry, or set `pauseImage` in windows-machine-config."},
		{NodeImageNotMirrored, isInfo, "The cluster has mirrors, but none has the pause image, which disconnected nodes need to start Pods.", "Mirror the image with an ImageTagMirrorSet, or set `pauseImage` to a digest that an ImageDigestMirrorSet covers."},
		{PinnedImageLeftOut, isWarning, "An image of a PinnedImageSet is not pulled: it lacks registry or digest, or there are more than 500.", "Name the image as `HOST[:PORT]/NAME@sha256:DIGEST`; remove unneeded images."},
	}
}
