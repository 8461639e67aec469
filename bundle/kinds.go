package bundle

import (
	"strconv"
)

// The kinds of entries, one per list of Layer.
const (
	KindDirectory     EntryKind = "directory"
	KindFile          EntryKind = "file"
	KindState         EntryKind = "state"
	KindVariable      EntryKind = "variable"
	KindEnvironment   EntryKind = "environment"
	KindService       EntryKind = "service"
	KindTrustedCA     EntryKind = "trusted-ca"
	KindRoute         EntryKind = "route"
	KindAuthorizedKey EntryKind = "authorized-key"
	KindFeature       EntryKind = "feature"
	KindFirewall      EntryKind = "firewall"
	KindExclusion     EntryKind = "exclusion"
	KindPolicy        EntryKind = "policy"
	KindEndpoint      EntryKind = "endpoint"
	KindNetwork       EntryKind = "network"
	KindHostName      EntryKind = "host-name"
	KindPayload       EntryKind = "payload"
)

// Kind describes one kind of entry to those who show entries: summaries, previews and the generated docs are made from
// it.
type Kind struct {
	Kind EntryKind
	// Plural names several entries in a summary line, such as "trusted CAs".
	Plural string
	// Section is the part of the node layout in which the docs list the kind.
	Section Section
	// Key is the name of the list in the host document of a preview; empty where another document shows the kind.
	Key string
	// Setting reports whether entries are settings of the host: neither files nor services.
	Setting bool
	// LastStays reports whether the settings stay when none of the kind is wanted: without an authorized key, no login
	// would work any longer.
	LastStays bool
	// Permanent settings stay when they are no longer wanted: undoing one costs a reboot and has no benefit.
	Permanent bool
	// Shared settings may belong to others when they were on the host before us: those stay when we no longer
	// want them.
	Shared bool
}

// Section is a part of the node layout.
type Section string

// The sections, in the order of the docs.
const (
	SectionFiles    Section = "Files"
	SectionServices Section = "Services"
	SectionPayload  Section = "Executables"
	SectionFolders  Section = "Folders"
	SectionState    Section = "State that programs on the node keep"
	SectionHost     Section = "The host"
)

// Setting is an entry that is neither a file nor a service, as a host keeps it. Value is canonical: equal settings have
// equal values.
type Setting struct {
	Kind   EntryKind
	Name   string
	Value  string
	Impact Impact
	// Digest is that of the value where the value travels as content: secrets and certificates.
	Digest Digest
}

// kind is the one description of a kind of entry: everything that distinguishes it from other kinds. What compares,
// checks, plans or shows entries is derived from it.
type kind[E any] struct {
	Kind
	list func(*Layer) []E
	// name is the entry's identity and order.
	name func(E) string
	// valid is nil where any name is valid.
	valid func(E) error
	// impact is nil where a change never costs anything.
	impact func(E) Impact
	// text is the entry in a summary line; nil where summaries do not show the kind.
	text func(E) string
	// compared returns the entry without its contents, and the contents; nil where the entry itself is all.
	compared func(E) (E, *Content)
	// setting returns the value, or the digest of a value that travels as content; nil where the kind is no setting.
	setting func(E) (value string, digest Digest)
}

// kinds are the descriptions, in the order of the lists of a layer.
var kinds = []described{
	kind[Directory]{
		Kind:  Kind{Kind: KindDirectory, Section: SectionFolders, Key: "directories"},
		list:  func(l *Layer) []Directory { return l.Directories },
		name:  func(e Directory) string { return e.Path },
		valid: checkDirectory,
	},
	kind[File]{
		Kind:     Kind{Kind: KindFile, Section: SectionFiles},
		list:     func(l *Layer) []File { return l.Files },
		name:     func(e File) string { return e.Path },
		valid:    checkFile,
		impact:   func(e File) Impact { return e.Impact },
		compared: File.withContent,
	},
	kind[State]{
		Kind:  Kind{Kind: KindState, Section: SectionState, Key: "state"},
		list:  func(l *Layer) []State { return l.State },
		name:  State.name,
		valid: checkState,
	},
	kind[Variable]{
		Kind:     Kind{Kind: KindVariable, Plural: "variables", Section: SectionHost},
		list:     func(l *Layer) []Variable { return l.Variables },
		name:     func(e Variable) string { return e.Name },
		valid:    checkMachineVariable,
		impact:   func(e Variable) Impact { return e.Impact },
		text:     func(e Variable) string { return e.Name },
		compared: Variable.withContent,
		setting:  func(e Variable) (string, Digest) { return e.Value, e.Digest },
	},
	kind[Environment]{
		Kind:     Kind{Kind: KindEnvironment, Section: SectionHost},
		list:     func(l *Layer) []Environment { return l.Environments },
		name:     func(e Environment) string { return e.Name },
		valid:    checkEnvironment,
		impact:   func(Environment) Impact { return ImpactRestart },
		compared: Environment.withContent,
	},
	kind[Service]{
		Kind:   Kind{Kind: KindService, Section: SectionServices},
		list:   func(l *Layer) []Service { return l.Services },
		name:   func(e Service) string { return e.Name },
		valid:  checkService,
		impact: func(e Service) Impact { return e.Impact },
	},
	kind[TrustedCA]{
		Kind:     Kind{Kind: KindTrustedCA, Plural: "trusted CAs", Section: SectionHost, Key: "trustedCAs", Shared: true},
		list:     func(l *Layer) []TrustedCA { return l.TrustedCAs },
		name:     func(e TrustedCA) string { return string(e.Digest) },
		valid:    func(e TrustedCA) error { return e.Digest.Validate() },
		impact:   func(e TrustedCA) Impact { return e.Impact },
		text:     func(e TrustedCA) string { return e.Subject },
		compared: func(e TrustedCA) (TrustedCA, *Content) { e.Content = Content{}; return e, nil },
		setting:  func(e TrustedCA) (string, Digest) { return "", e.Digest },
	},
	kind[AuthorizedKey]{
		Kind: Kind{
			Kind: KindAuthorizedKey, Plural: "authorized keys", Section: SectionHost, Key: "authorizedKeys",
			LastStays: true,
		},
		list:    func(l *Layer) []AuthorizedKey { return l.AuthorizedKeys },
		name:    func(e AuthorizedKey) string { return e.Fingerprint },
		valid:   checkAuthorizedKey,
		impact:  func(e AuthorizedKey) Impact { return e.Impact },
		text:    func(e AuthorizedKey) string { return e.Fingerprint },
		setting: func(e AuthorizedKey) (string, Digest) { return e.Line, "" },
	},
	kind[Route]{
		Kind:    Kind{Kind: KindRoute, Plural: "routes", Section: SectionHost, Key: "routes", Shared: true},
		list:    func(l *Layer) []Route { return l.Routes },
		name:    func(e Route) string { return e.Destination },
		valid:   checkRoute,
		impact:  func(e Route) Impact { return e.Impact },
		text:    func(e Route) string { return e.Destination + " via " + e.Via },
		setting: func(e Route) (string, Digest) { return e.Via, "" },
	},
	kind[Feature]{
		Kind:    Kind{Kind: KindFeature, Plural: "features", Section: SectionHost, Key: "features", Permanent: true, Shared: true},
		list:    func(l *Layer) []Feature { return l.Features },
		name:    func(e Feature) string { return e.Name },
		impact:  func(e Feature) Impact { return e.Impact },
		text:    func(e Feature) string { return e.Name },
		setting: func(Feature) (string, Digest) { return "", "" },
	},
	kind[FirewallRule]{
		Kind:    Kind{Kind: KindFirewall, Plural: "firewall", Section: SectionHost, Key: "firewall"},
		list:    func(l *Layer) []FirewallRule { return l.Firewall },
		name:    func(e FirewallRule) string { return e.Name },
		valid:   checkFirewall,
		impact:  func(e FirewallRule) Impact { return e.Impact },
		text:    func(e FirewallRule) string { return strconv.Itoa(e.Port) + "/" + e.Protocol },
		setting: func(e FirewallRule) (string, Digest) { return e.Protocol + "/" + strconv.Itoa(e.Port), "" },
	},
	kind[Exclusion]{
		Kind:    Kind{Kind: KindExclusion, Plural: "exclusions", Section: SectionHost, Key: "exclusions", Shared: true},
		list:    func(l *Layer) []Exclusion { return l.Exclusions },
		name:    func(e Exclusion) string { return e.Process },
		valid:   func(e Exclusion) error { return CheckPath(e.Process) },
		impact:  func(e Exclusion) Impact { return e.Impact },
		text:    func(e Exclusion) string { return e.Process },
		setting: func(Exclusion) (string, Digest) { return "", "" },
	},
	kind[Policy]{
		Kind:    Kind{Kind: KindPolicy, Plural: "policies", Section: SectionHost, Key: "policies"},
		list:    func(l *Layer) []Policy { return l.Policies },
		name:    func(e Policy) string { return e.Name },
		valid:   checkPolicy,
		impact:  func(e Policy) Impact { return e.Impact },
		text:    func(e Policy) string { return e.Name },
		setting: func(e Policy) (string, Digest) { return e.Value, "" },
	},
	kind[Endpoint]{
		Kind:    Kind{Kind: KindEndpoint, Plural: "endpoints", Section: SectionHost, Key: "endpoints"},
		list:    func(l *Layer) []Endpoint { return l.Endpoints },
		name:    func(e Endpoint) string { return e.Name },
		impact:  func(e Endpoint) Impact { return e.Impact },
		text:    func(e Endpoint) string { return e.Name },
		setting: func(e Endpoint) (string, Digest) { return e.Network + "/" + strconv.Itoa(e.Compartment), "" },
	},
	kind[Network]{
		Kind: Kind{Kind: KindNetwork, Plural: "networks", Section: SectionHost, Key: "networks"},
		list: func(l *Layer) []Network { return l.Networks },
		name: func(e Network) string { return e.Name },
		text: func(e Network) string { return e.Name },
	},
	kind[HostName]{
		Kind:    Kind{Kind: KindHostName, Plural: "host name", Section: SectionHost, Permanent: true},
		list:    func(l *Layer) []HostName { return hostNames(l.HostName) },
		name:    func(HostName) string { return Computer },
		impact:  func(e HostName) Impact { return e.Impact },
		text:    func(e HostName) string { return e.Name },
		setting: func(e HostName) (string, Digest) { return e.Name, "" },
	},
	kind[Payload]{
		Kind:   Kind{Kind: KindPayload, Section: SectionPayload},
		list:   func(l *Layer) []Payload { return l.Payload },
		name:   func(e Payload) string { return e.Path },
		valid:  checkPayload,
		impact: func(e Payload) Impact { return e.Impact },
	},
}
