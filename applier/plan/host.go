package plan

import (
	"time"

	"wmco/bundle"
)

// FileKind is what is at a path.
type FileKind string

const (
	// FileAbsent is nothing at all.
	FileAbsent FileKind = ""
	// FileRegular is a file.
	FileRegular FileKind = "file"
	// FileDirectory is a folder.
	FileDirectory FileKind = "directory"
	// FileOther is a link, a junction or a device. It is never followed and never written through.
	FileOther FileKind = "other"
)

// FileInfo is what a host reports about a path without reading the file.
type FileInfo struct {
	Path string
	Kind FileKind
	// Size is in bytes.
	Size int64
	// Modified is when the contents were last written, as the file system records it.
	Modified time.Time
	// ID changes when another file takes the path: volume and file index (BY_HANDLE_FILE_INFORMATION), or device and
	// inode.
	ID string
	// Access is empty if the host does not know it, AccessOther if it is neither AccessAdmins nor AccessUsers.
	Access bundle.Access
	// Owner is empty if the host does not know it.
	Owner Owner
}

// Owner owns a file or folder. An owner may change the access at any time, whatever it is
// (learn.microsoft.com/windows/win32/secauthz/owner-of-a-new-object: READ_CONTROL and WRITE_DAC are always granted).
type Owner string

const (
	// OwnerAdmins is SYSTEM, the group or the account of the administrators, or the installer of Windows.
	OwnerAdmins Owner = "administrators"
	// OwnerOther is any other account. All users may create folders in C:\ and C:\ProgramData, and own those.
	OwnerOther Owner = "other"
)

// IsTrusted reports whether only SYSTEM and Administrators can have written what is at the path: a file or folder of
// theirs, with access for them alone. It is also true if nothing is there.
func (f FileInfo) IsTrusted() bool {
	own := f.Owner != OwnerOther && (f.Access == "" || f.Access == bundle.AccessAdmins)
	return f.Kind == FileAbsent || f.Kind != FileOther && own
}

// AccessOther is any access but AccessAdmins and AccessUsers, which bundles use.
const AccessOther bundle.Access = "other"

// ServiceConfig is a service as the service control manager keeps it.
type ServiceConfig struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Start       bundle.StartType `json:"start"`
	// CommandLine is quoted as bundle.CommandLine does.
	CommandLine  string   `json:"commandLine"`
	Dependencies []string `json:"dependencies,omitempty"`
	// Environment is NAME=value, sorted. It may hold secrets.
	Environment []string        `json:"environment,omitempty"`
	Recovery    bundle.Recovery `json:"recovery"`
}

// Start types that no bundle has and a host may have.
const (
	StartManual   bundle.StartType = "manual"
	StartDisabled bundle.StartType = "disabled"
)

// ServiceStatus is what a service does at the moment.
type ServiceStatus string

const (
	// ServiceAbsent means that there is no service of that name.
	ServiceAbsent ServiceStatus = ""
	// ServiceStopped means that it does not run.
	ServiceStopped ServiceStatus = "stopped"
	// ServiceRunning means that it runs.
	ServiceRunning ServiceStatus = "running"
	// ServicePending means that it is starting or stopping.
	ServicePending ServiceStatus = "pending"
	// ServiceDeleting means that it is marked for deletion: Windows deletes it when it has stopped and the last handle
	// to it is closed.
	ServiceDeleting ServiceStatus = "deleting"
)

// ServiceState is a service on a host.
type ServiceState struct {
	ServiceConfig
	Status ServiceStatus
	// Process is the process id of a running service.
	Process int
	// Program is the current path of the executable of that process: it changes if the file is renamed. It is empty if
	// it is unknown or the service does not run.
	Program string
	// Dependents are the running services that depend on it, by name.
	Dependents []string
}

// Setting is one property of a host that is neither a file nor a service. Value is canonical: equal settings have equal
// values.
//
//	kind        name                    value
//	variable    its name                its value; a secret may be in it
//	trusted-ca  digest of the DER       the DER bytes
//	route       destination (CIDR)      address of the next hop, or bundle.ViaDefault for the default gateway
//	feature     its name                -
//	firewall    its name                protocol/port, as in TCP/10250
//	exclusion   path of the program     -
//	endpoint    its name                HNS network/compartment
//	network     HNS network             -   (programs make them; we only remove them)
//	host-name   bundle.Computer         the name
type Setting struct {
	Kind    bundle.EntryKind
	Name    string
	Value   string
	Present bool
	// Pending reports whether the value takes effect with the next boot.
	Pending bool
	// Unknown is why the setting could not be read; empty if it was. It has no Value then.
	Unknown string
	// Unavailable is true if the host cannot have this kind of setting, such as exclusions on a host without Defender.
	Unavailable bool
}

// ID is the name of the setting's entry in a bundle.
func (s Setting) ID() bundle.EntryID { return s.Kind.ID(s.Name) }
