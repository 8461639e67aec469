// Package preflight holds the question for a host before it becomes a node, its answer, and the findings that follow from both.
//
//	inputs of the cluster --> Question --stdin--> wmco-node preflight --> Answer --Findings--> missing things, each with a fix
//
// The host only reads. An answer is a report of one host: it decides nothing about another one.
package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"wmco/bundle"
)

// Schema is the version of Question and Answer.
const Schema = 1

// Question is what a host is asked. It holds credentials of registries: it is never printed and never written to a
// file.
type Question struct {
	Schema int `json:"schema"`
	// Address is where the host is reached.
	Address string `json:"address,omitempty"`
	// VSphere and VXLANPort decide which update of Windows Server 2022 is needed; 0 is the default port.
	VSphere   bool `json:"vSphere,omitempty"`
	VXLANPort int  `json:"vxlanPort,omitempty"`
	// RenamesComputer is true where joining gives the computer another name.
	RenamesComputer bool `json:"renamesComputer,omitempty"`
	// Node is true for a host that is a node already, or on its way to become one: its kubelet is no finding then.
	Node bool `json:"node,omitempty"`
	// API are the URLs of the API server. CA is the PEM text of the CAs that its certificate is verified with.
	API []string `json:"api,omitempty"`
	CA  string   `json:"ca,omitempty"`
	// TrustedCAs is the PEM text of the CAs that the host will trust beside its own.
	TrustedCAs string `json:"trustedCAs,omitempty"`
	// Places are where the pause image is looked for, in the order in which containerd asks.
	Places   []Place  `json:"places,omitempty"`
	Proxy    Proxy    `json:"proxy,omitzero"`
	Identity Identity `json:"identity,omitzero"`
}

// Place is one place at which an image is looked for.
type Place struct {
	// Manifest is the URL of the image's manifest.
	Manifest string `json:"manifest"`
	// Authorization is the value of that header, a secret; empty for none.
	Authorization string `json:"authorization,omitempty"`
	// SkipVerify accepts any certificate.
	SkipVerify bool `json:"skipVerify,omitempty"`
}

// Proxy is the cluster-wide proxy. The URLs may hold passwords.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"`
}

// Identity is where the credential provider of a cloud asks for the identity of the machine: at the instance metadata, without a proxy.
type Identity struct {
	// Platform is the cloud; empty if kubelets run no provider.
	Platform bundle.Platform `json:"platform"`
	URL      string          `json:"url"`
}

// IdentityOf returns where a platform has the identity. userAssigned is the one of several that Azure is asked for, an ID of a resource or of a client.
//
//	AWS    docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html: the name of the role
//	Azure  learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token: a token for registries
//	GCP    cloud.google.com/compute/docs/metadata/predefined-metadata-keys: the scopes of the service account; k8s.io/cloud-provider-gcp asks this name
func IdentityOf(p bundle.Platform, userAssigned string) Identity {
	switch p { //nolint:exhaustive // the others have no such provider
	case bundle.PlatformAWS:
		return Identity{p, "http://169.254.169.254/latest/meta-data/iam/security-credentials/"}
	case bundle.PlatformAzure:
		query := url.Values{"api-version": {"2018-02-01"}, "resource": {"https://containerregistry.azure.net"}}
		switch {
		case strings.Contains(userAssigned, "/"):
			query.Set("msi_res_id", userAssigned)
		case userAssigned != "":
			query.Set("client_id", userAssigned)
		}
		return Identity{p, "http://169.254.169.254/metadata/identity/oauth2/token?" + query.Encode()}
	case bundle.PlatformGCP:
		return Identity{p, "http://metadata.google.internal./computeMetadata/v1/instance/service-accounts/default/scopes"}
	}
	return Identity{}
}

// String hides everything: a question is in no message.
func (Question) String() string { return "question of preflight" }

// Answer is what a host reports. Everything in it is text of the host and is clipped and escaped where it is printed.
type Answer struct {
	Schema  int          `json:"schema"`
	Facts   bundle.Facts `json:"facts"`
	Machine Machine      `json:"machine"`
	Names   Names        `json:"names"`
	Reached []Reach      `json:"reached"`
	// ClockSkewSeconds is how much the host's clock is ahead of the API server's, negative where it is behind; absent
	// where no API server has reported its time.
	ClockSkewSeconds *float64 `json:"clockSkewSeconds,omitempty"`
	// Unread are the facts that could not be read, each with why.
	Unread []string `json:"unread,omitempty"`
}

// Machine has facts of the host's Windows.
type Machine struct {
	// Update is the number of the update, such as 2340 in 10.0.20348.2340 (UBR).
	Update int `json:"update,omitempty"`
	// Edition is EditionID, Installation InstallationType: Server, Server Core, Client, Nano Server.
	Edition      string `json:"edition,omitempty"`
	Installation string `json:"installation,omitempty"`
	Locale       string `json:"locale,omitempty"`
	FIPS         bool   `json:"fips,omitempty"`
	// CodeIntegrity is true while a policy of WDAC decides which programs run, AppLocker while one of AppLocker does.
	CodeIntegrity bool `json:"codeIntegrity,omitempty"`
	AppLocker     bool `json:"appLocker,omitempty"`
	// FreeBytes can be written to drive C:. PageFile is true if Windows has a page file.
	FreeBytes int64 `json:"freeBytes"`
	PageFile  bool  `json:"pageFile"`
	// StaticAddresses are the IPv4 addresses that the host does not have by DHCP. DevicelessNICsDisabled is true if the
	// Host Network Service makes no network cards without a device, which take such an address on some releases.
	StaticAddresses        []string `json:"staticAddresses,omitempty"`
	DevicelessNICsDisabled bool     `json:"devicelessNICsDisabled,omitempty"`
	// Services are those of the names that matter here that the host has.
	Services []Service `json:"services,omitempty"`
	Ports    []Port    `json:"ports,omitempty"`
	Folders  []Folder  `json:"folders,omitempty"`
	// Excluded is true if Defender leaves containerd alone; it has no meaning where Defender does not run.
	Excluded bool `json:"excluded,omitempty"`
}

// Service is one service of the host.
type Service struct {
	Name string `json:"name"`
	// Program is its program, without the arguments: they may hold secrets.
	Program string `json:"program,omitempty"`
	Running bool   `json:"running,omitempty"`
}

// PortState is whether a port is free.
type PortState string

const (
	// PortFree is a port that a service could listen on.
	PortFree PortState = "free"
	// PortTaken is one that a program listens on.
	PortTaken PortState = "taken"
	// PortExcluded is one in a range that Windows keeps for itself, such as WinNAT's.
	PortExcluded PortState = "excluded"
)

// Port is one port of TCP.
type Port struct {
	Number int       `json:"number"`
	State  PortState `json:"state"`
}

// Folder is a folder in which the node agent keeps what only administrators may change.
type Folder struct {
	Path string `json:"path"`
	// Trusted is true if only SYSTEM and Administrators own and change it.
	Trusted bool `json:"trusted"`
}

// Names is how the DNS of the host resolves its names.
type Names struct {
	// Full is the name that was looked up, Addresses are what it has, Pointers the names of the host's address.
	Full      string   `json:"full,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Pointers  []string `json:"pointers,omitempty"`
}

// Problem is why something was not reached.
type Problem string

const (
	// ProblemNone means that it answered as it should.
	ProblemNone Problem = ""
	// ProblemName is a name that has no address.
	ProblemName Problem = "name"
	// ProblemConnect is no connection: refused, no route, timed out.
	ProblemConnect Problem = "connect"
	// ProblemCertificate is a certificate that is not trusted.
	ProblemCertificate Problem = "certificate"
	// ProblemDenied is an answer 401 or 403.
	ProblemDenied Problem = "denied"
	// ProblemMissing is an answer 404.
	ProblemMissing Problem = "missing"
	// ProblemProxy is a proxy that does not answer or refuses.
	ProblemProxy Problem = "proxy"
	// ProblemAnswer is any other answer.
	ProblemAnswer Problem = "answer"
)

// ReachKind is what was asked.
type ReachKind string

const (
	// ReachAPI is an API server.
	ReachAPI ReachKind = "api"
	// ReachRegistry is a place of the pause image.
	ReachRegistry ReachKind = "registry"
	// ReachIdentity is the identity of the machine in the instance metadata.
	ReachIdentity ReachKind = "identity"
)

// Reach is how one of the question's URLs answered.
type Reach struct {
	Kind ReachKind `json:"kind"`
	// URL has neither user nor query.
	URL     string  `json:"url"`
	Problem Problem `json:"problem,omitempty"`
	// Text is the error, without credentials.
	Text string `json:"text,omitempty"`
	// ByProxy is true if the proxy was used.
	ByProxy bool `json:"byProxy,omitempty"`
}

// maxQuestion is the size of a question, in bytes: trusted CAs are the most of it.
const maxQuestion = 8 << 20

// ErrSchema is the error of a question or answer of another version.
var ErrSchema = errors.New("made by another version")

// DecodeQuestion reads a question. Its error has nothing of the question in it.
func DecodeQuestion(from io.Reader) (Question, error) {
	var q Question
	data, err := io.ReadAll(io.LimitReader(from, maxQuestion+1))
	if err != nil {
		return q, fmt.Errorf("reading the question: %w", err)
	}
	if len(data) > maxQuestion {
		return q, fmt.Errorf("reading the question: more than %d bytes", maxQuestion)
	}
	if json.Unmarshal(data, &q) != nil {
		return Question{}, errors.New("reading the question: not the JSON that wmco sends")
	}
	if q.Schema != Schema {
		return Question{}, fmt.Errorf("reading the question: schema %d, expected %d: %w", q.Schema, Schema, ErrSchema)
	}
	return q, nil
}

// DecodeAnswer reads an answer.
func DecodeAnswer(data []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(data, &a); err != nil {
		return a, err
	}
	if a.Schema != Schema {
		return Answer{}, fmt.Errorf("schema %d, expected %d: %w", a.Schema, Schema, ErrSchema)
	}
	return a, nil
}
