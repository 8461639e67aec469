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
		{MirrorsRefused, isError, "The machine-config-operator also refuses the mirror sets or Image/cluster. Linux and Windows nodes keep their last configuration.", fixInFinding},
		{MirrorNotRepresentable, warningOrInfo, "A source or mirror is left out that containerd on Windows cannot express: a wildcard, a host that cannot be a folder name, or a mirror whose path does not end in the source's path. Info for Linux-only images.", "Use a source for each registry, and mirrors like `<registry>/<any path>/<source path>`. If images are only at the existing operator's location, which the finding names, add that as a mirror. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{MirrorScopeWidened, warningOrInfo, "Mirrors for a part of a registry are used for all of it, because containerd configures whole registries. Warning if an ImageTagMirrorSet mirrors to a bare registry host: a pull by tag can then return another image of the same name and tag.", "Mirror to a path that holds only mirrored images, such as `<registry>/<source registry>/<source path>`. Or use digests and an ImageDigestMirrorSet. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{MirrorOrderNotKept, isWarning, "Sources on one registry list their mirrors in different orders; containerd has one order.", "Use the same order for all of them. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{MirrorBlocked, isInfo, "A mirror is left out: its registry is blocked, or must never be contacted as a source.", "Unblock the registry, or remove the mirror."},
		{TagMirrorServesDigests, isInfo, "Mirrors of an ImageTagMirrorSet serve pulls by digest too, because containerd cannot tell them apart. Digests are verified.", "None."},
		{NeverWidened, isWarning, "`NeverContactSource` applies to only some repositories of a registry. Windows nodes apply it to the whole registry: its other images are pulled only if a mirror has them.", "Mirror everything that Windows nodes pull from the registry. The finding lists other fixes. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{NeverNotKept, warningOrInfo, "Windows nodes may contact a source in spite of `NeverContactSource`. Info for Linux-only images.", "Set the policy for the whole registry, or `mirrors.partialNever: Closed`; use one source for each registry. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{BlockNotRepresentable, isWarning, "An entry of blockedRegistries that is not a whole registry is not blocked on Windows nodes.", "Block the whole registry. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{InsecureNotRepresentable, isWarning, "An entry of insecureRegistries that is not a whole registry has no effect, or only on mirrors.", "Name the whole registry, or install its CA. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{AllowNotRepresentable, isWarning, "Windows nodes cannot follow an entry of allowedRegistries. Registries that only it allows are blocked; with `mirrors.partialNever: Open`, those without mirrors and entries stay allowed.", "Name each allowed registry. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{AllowWidened, isWarning, "An entry of allowedRegistries allows a part of a registry or one image; Windows nodes may use all of it.", "None if acceptable. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{PullSecretEntryInvalid, isWarning, "An entry of the pull secret, or all of it, is invalid and skipped.", "Write the entry as `{\"auth\": \"<base64 of user:password>\"}`."},
		{PullSecretEntryWithheld, isInfo, "Windows kubelets do not get the pull secret entry of a registry with mirrors, because containerd would send it to the mirrors too.", "None if the mirrors have every image that Windows Pods use from this registry. Otherwise set `imagePullSecrets` in the Pods, which containerd also sends to the mirrors, or [`mirrors.mode: Exact`](mirrors.md#exact-mirrors), with which only kubelets get the entry."},
		{CredentialsNotUsed, isWarning, "An entry of the pull secret is not used: containerd has one set of credentials for each endpoint.", "Use one account that may read all mirrors under the endpoint. Or set [`mirrors.mode: Exact`](mirrors.md#exact-mirrors)."},
		{NodeImageUnreachable, errorOrWarning, "The pause image cannot be pulled from anywhere, so no Pod can start. The operator warns, and does not roll out the change until it is [confirmed](held-changes.md). `wmco validate` and golden folders report an error, `wmco diff` if the change adds the finding.", "Allow or mirror its registry, or set `pauseImage` in windows-machine-config."},
		{NodeImageNotMirrored, isInfo, "No mirror has the pause image, which disconnected nodes need to start Pods.", "Mirror it with an ImageTagMirrorSet, or set `pauseImage` to a digest that an ImageDigestMirrorSet covers."},
		{PinnedImageLeftOut, isWarning, "An image of a PinnedImageSet is not pulled: it lacks registry or digest, or there are more than 500.", "Name the image as `HOST[:PORT]/NAME@sha256:DIGEST`, or remove images."},
	}
}
