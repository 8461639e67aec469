// Package record is the operator's own record of which host each Node is. Nodes can write their addresses, labels and annotations
// themselves, so none of these identifies a host.
//
//	host (Machine by UID, or entry of windows-instances) --first contact over SSH--> address, account, host key
//	its facts under that key name a Node that exists     --Bind----------------->   Node by name and UID
//
// Records are kept in ConfigMaps of the operator's namespace, where nodes cannot write (controller/hosts). The package
// holds values and their encoding; it makes no requests.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
)

// Schema is the version of a Record. Within one version fields are only added.
const Schema = 1

// Origin is how the operator came to know that a host is a Node.
type Origin string

const (
	// OriginJoined means that the operator has made the host a node.
	OriginJoined Origin = "Joined"
	// OriginAdopted means that the host was a node before the operator knew it: another operator, an older version or a
	// person joined it.
	OriginAdopted Origin = "Adopted"
)

// Record is one host.
type Record struct {
	Schema int `json:"schema"`
	// Machine is the UID of the host's Machine; empty for an instance. MachineName is its name, for people.
	Machine     types.UID `json:"machine,omitempty"`
	MachineName string    `json:"machineName,omitempty"`
	// Entry is the key in windows-instances, in lower case; empty for the host of a Machine.
	Entry string `json:"entry,omitempty"`
	// Address is the IP address or DNS name at which the host was reached last under its key, Account the account
	// there.
	Address string `json:"address,omitempty"`
	Account string `json:"account,omitempty"`
	// Resolved are the IP addresses of an instance as the operator knows them, sorted and separated by blanks: its
	// entry, or the last answer of the resolver for it.
	Resolved string `json:"resolved,omitempty"`
	// HostKey is the pinned key of its SSH server: the wire form (RFC 4253, 6.6) in base64. Empty before the first
	// contact.
	HostKey string `json:"hostKey,omitempty"`
	// AcceptedKey is the operator's own public key, "ALGORITHM BASE64", with which it has logged in to the host last,
	// under its pinned key, or which the node agent has reported since (KeyReported); empty if that is not known. The
	// host keeps accepting it until another one is confirmed. It counts with its seal alone (ProvenKey).
	AcceptedKey string `json:"acceptedKey,omitempty"`
	// KeyReported is true if there was no login with AcceptedKey.
	KeyReported bool `json:"keyReported,omitempty"`
	// KeySeal is a digest of AcceptedKey for this host that the operator alone can make: hosts get AcceptedKey as a key
	// that logs in, so a record that another user has written adds no key to a host. What else a right to write these
	// ConfigMaps allows is in docs/security.md.
	KeySeal bundle.Digest `json:"keySeal,omitempty"`
	// Node and NodeUID are those of its Node; empty before the host was known to be one. Of an instance whose
	// certificate was approved, there is a name before the Node is there.
	Node    string    `json:"node,omitempty"`
	NodeUID types.UID `json:"nodeUID,omitempty"`
	Origin  Origin    `json:"origin,omitempty"`
	// Served are the IP addresses besides the entry at which the host was reached under its pinned key for the last
	// serving certificate that needed a login, separated by blanks.
	Served string `json:"served,omitempty"`
	// Adopting is true while the host has the agent of another operator, and gets its bundle over SSH.
	Adopting bool `json:"adopting,omitempty"`
}

// ID is the key of a Record: of a Machine "machine_" and its UID, of an instance its entry in lower case, which has no
// underscore.
type ID string

const machinePrefix = "machine_"

// OfMachine is the ID of the host of a Machine.
func OfMachine(uid types.UID) ID { return ID(machinePrefix + string(uid)) }

// OfEntry is the ID of the host of an entry of windows-instances.
func OfEntry(entry string) ID { return ID(strings.ToLower(strings.TrimSpace(entry))) }

// New returns an empty record for an ID.
func New(id ID) Record {
	if uid, ok := strings.CutPrefix(string(id), machinePrefix); ok {
		return Record{Machine: types.UID(uid)}
	}
	return Record{Entry: string(id)}
}

// ID returns the key of the record.
func (r Record) ID() ID {
	if r.Machine != "" {
		return OfMachine(r.Machine)
	}
	return OfEntry(r.Entry)
}

// WithAcceptedKey returns the record with the public key with which the operator has logged in, sealed with its key of
// digests.
func (r Record) WithAcceptedKey(public string, k bundle.Key) Record {
	r.AcceptedKey = public
	r.KeySeal, r.KeyReported = r.sealOfKey(k), false
	return r
}

// ProvenKey returns AcceptedKey where the operator has sealed it for this host and its pinned key, and otherwise none.
func (r Record) ProvenKey(k bundle.Key) string {
	if len(k) == 0 || r.AcceptedKey == "" || r.KeySeal != r.sealOfKey(k) {
		return ""
	}
	return r.AcceptedKey
}

func (r Record) sealOfKey(k bundle.Key) bundle.Digest {
	return k.Of([]byte(strings.Join([]string{"accepted key", string(r.ID()), r.HostKey, r.AcceptedKey}, "\n")))
}

// String names the host for people.
func (r Record) String() string {
	if r.Machine == "" {
		return r.Entry
	}
	if r.MachineName == "" {
		return "the Machine with UID " + string(r.Machine)
	}
	return "Machine " + r.MachineName
}

// IsNode reports whether the host of the record is this Node object.
func (r Record) IsNode(name string, uid types.UID) bool {
	return r.Node != "" && r.Node == name && r.NodeUID == uid
}

// maxRecord is the size of the largest record, in bytes: an RSA key of 16,384 bits has 2.7 KiB, and there are two.
const maxRecord = 8 << 10

// ErrInvalid means that a text is not one that this package wrote.
var ErrInvalid = errors.New("not a record of a host")

// Encode returns the text of a record. The same value gives the same text.
func (r Record) Encode() (string, error) {
	r.Schema = Schema
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encoding the record of %s: %w", r, err)
	}
	if len(text) > maxRecord {
		return "", fmt.Errorf("%w: the record of %.100s has %d bytes, at most %d are allowed", ErrInvalid, r,
			len(text), maxRecord)
	}
	return string(text), nil
}

// Decode reads what Encode wrote under an ID. The record of a newer operator is a *bundle.SchemaError, anything else
// that cannot be used is ErrInvalid.
func Decode(id ID, text string) (Record, error) {
	if len(text) > maxRecord {
		return Record{}, fmt.Errorf("%w: %s: %d bytes, at most %d are allowed", ErrInvalid, id, len(text), maxRecord)
	}
	if err := bundle.CheckSchema([]byte(text), "record of host "+string(id), Schema); err != nil {
		if newer := (*bundle.SchemaError)(nil); errors.As(err, &newer) {
			return Record{}, err
		}
		return Record{}, fmt.Errorf("%w: %s: %v", ErrInvalid, id, err) //nolint:errorlint // the error of the library is no contract
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("%w: %s: it is not JSON of the right form: %v", ErrInvalid, id, err) //nolint:errorlint // as above
	}
	if r.ID() != id {
		return Record{}, fmt.Errorf("%w: %s: it is that of %s", ErrInvalid, id, r)
	}
	return r, nil
}

// namePrefix begins the names of the ConfigMaps that hold records.
const namePrefix = "windows-hosts-"

// shards is how many ConfigMaps there are: a change rewrites one, which has 60 of a thousand records, 30 KiB.
const shards = 16

// ConfigMapName returns the ConfigMap that holds the record of an ID.
func ConfigMapName(id ID) string {
	sum := sha256.Sum256([]byte(id))
	return namePrefix + hex.EncodeToString(sum[:1])[:1]
}

// ConfigMapNames returns the names of all ConfigMaps that hold records.
func ConfigMapNames() []string {
	var names []string
	for i := range shards {
		names = append(names, fmt.Sprintf("%s%x", namePrefix, i))
	}
	return names
}
