// Package mirrors renders mirror sets, image settings and pull secret as hosts files of containerd.
//
//	sets --validate--> merge per source --express--> endpoints per registry host --join--> hosts files
//	                   (as OpenShift does)           (as containerd can)
//
// OpenShift maps scopes (host, or host with a path) to lists of mirrors; containerd maps hosts to lists of endpoints
// and always asks an endpoint for the whole path. Where the two differ, a finding describes what Windows nodes do instead.
// The package is pure: it reads no file and no cluster.
package mirrors

import "wmco/bundle"

// SetKind is the kind of object that a mirror comes from.
type SetKind string

const (
	// DigestSet is an entry of an ImageDigestMirrorSet: for pulls by digest.
	DigestSet SetKind = "ImageDigestMirrorSet"
	// TagSet is an entry of an ImageTagMirrorSet: for pulls by tag.
	TagSet SetKind = "ImageTagMirrorSet"
	// ContentSourcePolicy is an entry of an ImageContentSourcePolicy, the older form of DigestSet.
	ContentSourcePolicy SetKind = "ImageContentSourcePolicy"
)

// Policy is whether the source itself may be asked.
type Policy string

const (
	// AllowContactingSource is the default: the source is asked last.
	AllowContactingSource Policy = "AllowContactingSource"
	// NeverContactSource asks mirrors only.
	NeverContactSource Policy = "NeverContactSource"
)

// Set is one source with its mirrors, in the order of preference.
type Set struct {
	Kind SetKind
	Ref  bundle.Ref
	// Field is the path of the entry inside the object.
	Field   string
	Source  string
	Mirrors []string
	// Policy is empty if the object has none, which counts as AllowContactingSource.
	Policy Policy
}

// Scopes are the registries of Image/cluster's registrySources: host[:port][/path] or *.host.
type Scopes struct {
	Ref      bundle.Ref
	Insecure []string
	Blocked  []string
	Allowed  []string
}

// PartialNever decides what happens to a registry host if NeverContactSource applies to some of its repositories but not
// to all.
type PartialNever string

const (
	// Closed closes the whole host: no part of it is contacted.
	Closed PartialNever = "Closed"
	// Open leaves the host open: the policy has no effect.
	Open PartialNever = "Open"
)

// Mode is how mirrors and blocked registries become a configuration of containerd.
type Mode string

const (
	// HostsFiles writes what containerd's hosts files can express.
	HostsFiles Mode = "HostsFiles"
	// Exact uses the gateway on the node for registries whose rules hosts files cannot express.
	Exact Mode = "Exact"
)

// Options are the settings of a cluster about mirrors.
type Options struct {
	Mode Mode
	// Gateway is host:port of the node's gateway.
	Gateway      string
	PartialNever PartialNever
	// PauseImage is the image that every node pulls.
	PauseImage string
	// PullSecretOnNodes gives kubelets those entries of the pull secret that containerd would never send to a mirror.
	PullSecretOnNodes bool
}

// Inputs is all that the hosts files of a cluster depend on.
type Inputs struct {
	Sets   []Set
	Scopes Scopes
	// Policies are which signatures images need. Only the mode Exact applies them.
	Policies []SignaturePolicy
	// PullSecret is the text of .dockerconfigjson.
	PullSecret    bundle.Secret
	PullSecretRef bundle.Ref
}
