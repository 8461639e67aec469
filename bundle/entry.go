package bundle

import "fmt"

// Layer is one part of a bundle: its entries, sorted, without their contents.
type Layer struct {
	Schema int       `json:"schema"`
	Kind   LayerKind `json:"kind"`
	Stage  Stage     `json:"stage"`
	// NodeName is the name of the Node that a node layer is for. It is empty before there is one, and for a node whose
	// agent does not read it.
	NodeName     string        `json:"nodeName,omitempty"`
	Directories  []Directory   `json:"directories,omitempty"`
	Files        []File        `json:"files,omitempty"`
	State        []State       `json:"state,omitempty"`
	Variables    []Variable    `json:"variables,omitempty"`
	Environments []Environment `json:"environments,omitempty"`
	Services     []Service     `json:"services,omitempty"`
	TrustedCAs   []TrustedCA   `json:"trustedCAs,omitempty"`
	// AuthorizedKeys are in the node layer: which ones a host must accept depends on those that it is known to accept.
	AuthorizedKeys []AuthorizedKey `json:"authorizedKeys,omitempty"`
	Routes         []Route         `json:"routes,omitempty"`
	Features       []Feature       `json:"features,omitempty"`
	Firewall       []FirewallRule  `json:"firewall,omitempty"`
	Exclusions     []Exclusion     `json:"exclusions,omitempty"`
	// Policies are in the node layer: an agent of an earlier version does not read them.
	Policies  []Policy   `json:"policies,omitempty"`
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	Networks  []Network  `json:"networks,omitempty"`
	HostName  HostName   `json:"hostName,omitzero"`
	Payload   []Payload  `json:"payload,omitempty"`
}

// Impact is what a change of an entry costs the workload of a node. Impacts are ordered.
type Impact string

const (
	// ImpactNone is for entries that are read on use: nothing restarts.
	ImpactNone Impact = "none"
	// ImpactRestart restarts the services that read the entry; pods keep running.
	ImpactRestart Impact = "restart"
	// ImpactDrain moves the pods away first.
	ImpactDrain Impact = "drain"
	// ImpactReboot drains and reboots.
	ImpactReboot Impact = "reboot"
)

// Rank orders impacts from none (0) to reboot (3). An unknown impact ranks above all, so that it is never taken for
// none.
func (i Impact) Rank() int {
	switch i {
	case ImpactNone:
		return 0
	case ImpactRestart:
		return 1
	case ImpactDrain:
		return 2
	case ImpactReboot:
		return 3
	}
	return 4
}

// CheckLimit returns an error for an impact above the limit. No limit allows everything.
func (i Impact) CheckLimit(limit Impact) error {
	if limit == "" || i.Rank() <= limit.Rank() {
		return nil
	}
	return fmt.Errorf("the plan has impact %s, and at most %s is allowed", i, limit)
}

// Access is who may read a file or folder on the node.
type Access string

const (
	// AccessUsers lets users read; SYSTEM and Administrators write.
	AccessUsers Access = "users"
	// AccessAdmins is SYSTEM and Administrators only; every secret has it.
	AccessAdmins Access = "admins"
)

// Content is bytes that are sent beside the manifest and never in it.
type Content struct {
	// Data are the bytes that are written to the node.
	Data []byte
	// Preview is what people see instead of secret data: the same text with each secret masked. Nil for public data.
	Preview []byte
}

// Secret reports whether the data must not be shown.
func (c Content) Secret() bool { return c.Preview != nil }

// Shown returns what people may see: the preview of a secret, the data of everything else.
func (c Content) Shown() []byte {
	if c.Secret() {
		return c.Preview
	}
	return c.Data
}

// File is one file with its whole contents.
type File struct {
	// Path is absolute on the node, `C:\k\kubelet.conf`.
	Path   string `json:"path"`
	Digest Digest `json:"digest"`
	// Size is in bytes; 0 for masked secrets, whose length is secret too.
	Size   int64  `json:"size,omitempty"`
	Secret bool   `json:"secret,omitempty"`
	Access Access `json:"access"`
	Impact Impact `json:"impact"`

	Content Content `json:"-"`
}

// Directory is a managed folder.
type Directory struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
	// Exclusive folders hold nothing but what the bundle names: anything else in them is removed. In other folders
	// unmanaged files stay and are reported.
	Exclusive bool `json:"exclusive,omitempty"`
}

// State is a path that programs on the node write themselves: its contents are never compared.
type State struct {
	Path string `json:"path"`
	// File reports whether the path is one file; otherwise it is a folder.
	File bool `json:"file,omitempty"`
	// Cluster is the identity of the cluster that the state belongs to. State left by another cluster is removed
	// before anything starts (stale addresses and certificates).
	Cluster string `json:"cluster,omitempty"`
	// Pattern with Keep limits files that accumulate: of the files in Path that match (path/filepath.Match), the newest
	// Keep stay. Zero keeps all.
	Pattern string `json:"pattern,omitempty"`
	Keep    int    `json:"keep,omitempty"`
}

// Variable is an environment variable. Exactly one of Value (public) and Digest (secret) is set.
type Variable struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Digest Digest `json:"digest,omitempty"`
	Impact Impact `json:"impact"`

	Content Content `json:"-"`
}

// Secret reports whether the value is kept out of the manifest.
func (v Variable) Secret() bool { return v.Digest != "" }

// Environment is a named set of variables that services refer to. It is in the cluster layer, so that the node layer,
// which names it, holds no secrets.
type Environment struct {
	Name      string     `json:"name"`
	Variables []Variable `json:"variables"`
}

// StartType is when the service control manager starts a service.
type StartType string

// StartAuto starts the service at boot (SERVICE_AUTO_START).
const StartAuto StartType = "auto"

// Recovery is what the service control manager does when a service fails: it restarts the service after each delay in
// turn, and from then on after the last one (SERVICE_FAILURE_ACTIONS).
type Recovery struct {
	RestartAfterSeconds []int `json:"restartAfterSeconds"`
	// ResetSeconds is the time without a failure after which the count of failures is reset.
	ResetSeconds int `json:"resetSeconds"`
}

// ProbeKind is how the health of a service is checked.
type ProbeKind string

const (
	// ProbeHTTP expects status 200 from the URL in Target.
	ProbeHTTP ProbeKind = "http"
	// ProbeTCP expects the address in Target to accept a connection.
	ProbeTCP ProbeKind = "tcp"
	// ProbePipe expects the named pipe in Target to exist.
	ProbePipe ProbeKind = "pipe"
	// ProbeRunning expects the service to run.
	ProbeRunning ProbeKind = "running"
)

// Probe is how to find out whether a service is healthy.
type Probe struct {
	Kind   ProbeKind `json:"kind"`
	Target string    `json:"target,omitempty"`
	// DeadlineSeconds is how long after the start of the service the probe may take to succeed.
	DeadlineSeconds int `json:"deadlineSeconds"`
	// SettleSeconds is how long the service has to stay healthy, as the same process, before it counts as healthy; 0 is
	// DefaultSettleSeconds.
	SettleSeconds int `json:"settleSeconds,omitempty"`
}

// DefaultSettleSeconds is the time in which a service that fails after its start usually does: it reads its
// configuration, reaches its dependencies, and answers before it finds out.
const DefaultSettleSeconds = 10

// RotationKind is who keeps a log limited in size and number.
type RotationKind string

const (
	// RotationWrapper is kube-log-runner around the service: it rotates by size, and the node agent limits the number.
	RotationWrapper RotationKind = "wrapper"
	// RotationFlags is the service itself by its own flags.
	RotationFlags RotationKind = "flags"
	// RotationTruncate is the service itself, which empties its one file when it reaches the size.
	RotationTruncate RotationKind = "truncate"
	// RotationAgent is the node agent, for programs that cannot rotate.
	RotationAgent RotationKind = "agent"
)

// Log is one log file of a service and its limits.
type Log struct {
	Path     string       `json:"path"`
	Rotation RotationKind `json:"rotation"`
	// Pattern matches the rotated files in the folder of Path.
	Pattern string `json:"pattern,omitempty"`
	// SizeBytes is the size at which the log is rotated.
	SizeBytes int64 `json:"sizeBytes"`
	// Files is the number of rotated files that stay.
	Files int `json:"files,omitempty"`
	// AgeSeconds is the age at which a rotated file is removed; 0 keeps files until there are more than Files.
	AgeSeconds int64 `json:"ageSeconds,omitempty"`
}

// AgentService is the service that the node agent runs as. Its name is that of the existing operator's daemon, which
// must-gather and users know.
const AgentService = "windows-instance-config-daemon"

// AgentProgram is how the node agent calls itself: in its requests, and as the source of its Events.
const AgentProgram = "wmco-node"

// SigningKeysFile is where a host keeps the public keys of the operator: the desired state of its Node is signed with
// one of them.
const SigningKeysFile = `C:\k\desired-state-keys.pem`

// LedgerCopy is the name of the file beside the logs of the node agent that lists the managed entries of the host.
const LedgerCopy = "ledger.json"

// UploadFolder holds the node agents that were uploaded over SSH. Only administrators write there
// (docs/decisions/0015-where-the-agent-is-uploaded.md).
const UploadFolder = `C:\Windows\wmco`

// RemovalProgram begins the path of the program of RemovalService, which Windows removes when it boots.
const RemovalProgram = `C:\Windows\wmco-removal-`

// GuardService is the service that restores the node agent if a new one does not work. It exists while the agent is
// exchanged.
const GuardService = AgentService + "-guard"

// RemovalService is the service that removes everything from a host whose node ends. It exists from the time at which
// the node agent was told to until it has removed itself.
const RemovalService = AgentService + "-removal"

// Service is one Windows service.
type Service struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Start       StartType `json:"start"`
	// Argv is the unquoted command. It is quoted for CommandLineToArgvW where it is written to the host.
	Argv         []string `json:"argv"`
	Dependencies []string `json:"dependencies,omitempty"`
	// Environment is the name of an Environment in the cluster layer.
	Environment string `json:"environment,omitempty"`
	// Reads are the files and executables whose change restarts the service.
	Reads    []string `json:"reads,omitempty"`
	Recovery Recovery `json:"recovery"`
	Probe    Probe    `json:"probe"`
	Logs     []Log    `json:"logs,omitempty"`
	Impact   Impact   `json:"impact"`
}

// TrustedCA is a certificate for LocalMachine\Root. Its digest, of the DER bytes, is its identity.
type TrustedCA struct {
	Digest  Digest `json:"digest"`
	Subject string `json:"subject"`
	// NotAfter is the end of validity, RFC 3339 in UTC.
	NotAfter string `json:"notAfter"`
	Impact   Impact `json:"impact"`

	Content Content `json:"-"`
}

// Route is a persistent route. Via is an address, or ViaDefault for the next hop of the default route.
type Route struct {
	Destination string `json:"destination"`
	Via         string `json:"via"`
	Impact      Impact `json:"impact"`
}

// ViaDefault stands for the next hop of the host's default IPv4 route.
const ViaDefault = "default"

// Feature is an optional feature of Windows that must be on.
type Feature struct {
	Name   string `json:"name"`
	Impact Impact `json:"impact"`
}

// FirewallRule allows inbound traffic.
type FirewallRule struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     int    `json:"port"`
	Impact   Impact `json:"impact"`
}

// Exclusion is a program that Microsoft Defender, where it runs, does not scan.
type Exclusion struct {
	Process string `json:"process"`
	Impact  Impact `json:"impact"`
}

// Endpoint is an HNS endpoint on an HNS network, attached to a compartment.
type Endpoint struct {
	Name        string `json:"name"`
	Network     string `json:"network"`
	Compartment int    `json:"compartment"`
	Impact      Impact `json:"impact"`
}

// Network is an HNS network that programs on the node create themselves, as they write State. A network of another
// cluster is removed before anything starts.
type Network struct {
	Name string `json:"name"`
	// Cluster is the identity of the cluster that the network belongs to.
	Cluster string `json:"cluster,omitempty"`
}

// Computer is the name of the only host-name entry: another host name is a change of this entry.
const Computer = "computer"

// HostName is the name of the host, one entry at most.
type HostName struct {
	Name   string `json:"name"`
	Impact Impact `json:"impact"`
}

// Payload is an executable that we ship. Digest and Size are empty where only the component and version are known.
type Payload struct {
	Path      string `json:"path"`
	Component string `json:"component"`
	Version   string `json:"version"`
	Digest    Digest `json:"digest,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Impact    Impact `json:"impact"`
}
